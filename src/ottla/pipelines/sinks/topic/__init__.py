"""A topic as the place where the rows go."""
