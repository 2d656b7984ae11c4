"""Add, list, describe and delete quotas of users, client ids and addresses."""

FIRST = ("add", "list", "describe", "delete")
