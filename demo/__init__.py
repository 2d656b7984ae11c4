"""`make demo`: the flights of New York 2013 through Ottla into a Delta table."""
