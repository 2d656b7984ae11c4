"""From a checked plan to a running query: the batches, their rejected rows, the query itself."""
