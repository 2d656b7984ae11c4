"""Add, list and delete ACLs, and say which one decides."""

FIRST = ("add", "list", "describe", "check", "delete")
