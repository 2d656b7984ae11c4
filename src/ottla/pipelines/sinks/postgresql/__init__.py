"""A table of PostgreSQL as the place where the rows go."""
