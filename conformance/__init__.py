"""`make conformance`: public suites of other people's clients and tools, run against one broker.

With `ARGS="--brokers 3"` against a cluster whose topics have three replicas.

Nothing of the suites lies in this repository: their registry packages are fetched into the cache.
"""
