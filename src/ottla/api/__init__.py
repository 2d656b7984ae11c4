"""One file for each request type: it checks, asks the broker's parts, and answers."""
