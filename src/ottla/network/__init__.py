"""The network side of a broker: listeners, connections, requests in, and connections to others."""
