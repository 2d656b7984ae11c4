"""Show what happened to one message."""
