"""Where a pipeline's rows go."""
