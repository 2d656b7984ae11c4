"""What every coordinator shard is made of: its step, its records' encoding, its partition. Pure."""
