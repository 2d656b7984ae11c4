"""What a checkpoint belongs to: the cluster, the topics, the table, the process that runs it."""
