"""Inspect and check a partition's folder; list, put back and delete stray folders."""

FIRST = ("segments", "batches", "check")
