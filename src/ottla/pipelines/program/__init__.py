"""A run of the pipelines of one file in one Spark session: its start, its state, its end.

Nothing here knows a terminal: a `View` is shown how the pipelines stand.
"""
