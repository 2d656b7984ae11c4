"""Whole brokers in one process and in virtual time: the shipped `Node`, seeded and repeatable."""
