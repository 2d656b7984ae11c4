"""The pipeline file: what a pipeline reads, does and writes, as TOML or Python.

Reading and checking a file is pure and imports no PySpark; `build` makes the frames and starts the
queries.
"""
