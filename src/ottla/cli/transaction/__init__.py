"""List and describe transactions, and end those that hang."""

FIRST = ("list", "describe", "hanging", "abort")
