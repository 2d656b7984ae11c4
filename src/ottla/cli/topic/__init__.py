"""Create, list, describe, alter, trim and delete topics."""

FIRST = ("create", "list", "describe", "alter", "delete")
