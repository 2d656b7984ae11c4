"""Measure the throughput and latency of a cluster."""

FIRST = ("produce", "consume")
