"""Kafka in Python: a broker, its command line, pipelines on Spark, and the journey of a message."""

__version__ = "0.1.0"
