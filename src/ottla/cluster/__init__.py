"""This broker in its cluster: registration, controller tenure, metadata deltas, forwarding."""
