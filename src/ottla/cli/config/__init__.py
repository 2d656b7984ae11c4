"""Show and change the settings of topics, groups and brokers."""

FIRST = ("describe", "alter")
