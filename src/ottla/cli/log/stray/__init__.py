"""List, put back and delete folders that belong to no topic."""

FIRST = ("list", "adopt")
