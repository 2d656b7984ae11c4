"""Decisions of replication, pure: the leader's (ISR, high watermark) and the follower's."""
