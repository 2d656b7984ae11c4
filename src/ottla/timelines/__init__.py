"""Timelines: what happened when on each partition, recorded as it happens."""
