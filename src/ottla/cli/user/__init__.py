"""Add, list, describe and delete users with a password (SCRAM)."""

FIRST = ("add", "list", "describe", "delete")
