"""A checkpoint: the cluster, topics and table it belongs to, who runs it, and where it stands."""
