"""One partition on this broker: role, append, read, acknowledgement, fetches, replication."""
