"""Classic consumer groups: the members agree on a leader, and the leader assigns."""
