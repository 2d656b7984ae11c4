"""One file for each request type: it checks the request, calls the broker's parts, and responds."""
