"""Keep the addresses and settings of clusters, and choose one."""

FIRST = ("list", "show", "add", "use", "remove")
