"""A folder of files as the place where the rows go."""
