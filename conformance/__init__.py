"""`make conformance`: public suites of other people's clients and tools, run against a broker.

Nothing of the suites lies in this repository: their registry packages are fetched into the cache.
"""
