"""Tracing one message on this broker: finding it, and gathering the facts for its journey."""
