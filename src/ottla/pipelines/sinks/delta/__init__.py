"""A Delta table as the place where the rows go."""
