"""Loads that measure a cluster, and what they count."""
