"""Decisions of replication, pure: the leader's (in-sync set, high watermark) and the follower's."""
