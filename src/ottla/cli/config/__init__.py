"""Show and change the settings of topics and brokers."""

FIRST = ("describe", "alter")
