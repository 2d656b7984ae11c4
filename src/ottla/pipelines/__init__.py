"""Pipelines on Spark: from a topic into Delta. Needs the extra `spark`; see docs/pipelines.md.

They know a broker only by its bootstrap servers, so the same code runs on Apache Kafka.
"""

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.order import deduplicate, latest_by_key
from ottla.pipelines.progress import report_progress
from ottla.pipelines.run.start import to_delta
from ottla.pipelines.source.topic import rejected, topic
from ottla.pipelines.spark.start import session

__all__ = [
    "PipelineError",
    "deduplicate",
    "latest_by_key",
    "rejected",
    "report_progress",
    "session",
    "to_delta",
    "topic",
]
