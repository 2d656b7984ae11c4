"""Kafka in Python: a broker, its command line, pipelines on Spark, and the journey of a message."""

from ottla import accelerator

__version__ = "0.1.0"

accelerator.select()
