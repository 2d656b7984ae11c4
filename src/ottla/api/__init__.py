"""One file for each request type: it authorises, checks, asks the node, and answers."""
