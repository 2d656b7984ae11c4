"""List, describe, reset and delete consumer groups."""

FIRST = ("list", "describe", "members", "reset", "delete")
