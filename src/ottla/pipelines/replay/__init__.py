"""Rejected rows sent through their pipeline once more, each once."""
