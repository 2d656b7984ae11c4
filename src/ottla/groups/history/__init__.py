"""What happened in groups, and why: the history of their rebalances."""
