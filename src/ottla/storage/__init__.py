"""All logs of one broker: opening, flushes, checkpoints, retention, compaction, disk failures."""
