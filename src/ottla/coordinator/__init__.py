"""The runtime of coordinators: load a partition, decide, append, apply, reply."""
