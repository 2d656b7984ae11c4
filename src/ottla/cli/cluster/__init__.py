"""Start, describe and change a cluster."""

FIRST = ("start", "describe", "drain", "reassign", "elect", "log-dirs", "throttle")
