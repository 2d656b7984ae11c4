"""Explaining one message: when it was appended, replicated, read, delivered, and may be deleted.
Pure.
"""
