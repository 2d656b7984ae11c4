"""Pipelines on Spark: from a topic into Delta, files, a database or a topic. See docs/pipelines.md.

They need the extra `spark`. They know a broker only by its bootstrap servers, so the same code runs
on Apache Kafka.
"""

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.order import deduplicate, latest_by_key
from ottla.pipelines.progress import report_progress
from ottla.pipelines.sinks.delta.maintenance import maintain
from ottla.pipelines.sinks.delta.to_delta import to_delta
from ottla.pipelines.sinks.files.to_files import to_files
from ottla.pipelines.sinks.postgresql.to_postgresql import to_jdbc as to_jdbc
from ottla.pipelines.sinks.postgresql.to_postgresql import to_postgresql
from ottla.pipelines.sinks.topic.to_topic import to_topic
from ottla.pipelines.source.topic import rejected, topic
from ottla.pipelines.spark.start import session

__all__ = [
    "PipelineError",
    "deduplicate",
    "latest_by_key",
    "maintain",
    "rejected",
    "report_progress",
    "session",
    "to_delta",
    "to_files",
    "to_postgresql",
    "to_topic",
    "topic",
]
