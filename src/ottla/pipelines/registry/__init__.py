"""A schema registry: its settings, its client, and what a pipeline makes of its schemas."""
