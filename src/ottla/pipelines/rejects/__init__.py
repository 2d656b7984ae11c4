"""Rejected rows: written beside the target, kept until then, told to the brokers, counted."""
