"""Pipelines on Spark: from a topic into Delta, files, a database or a topic. See docs/pipelines.md.

They need the extra `spark`. They know a broker only by its bootstrap servers, so the same code runs
on Apache Kafka. Each sink brings its functions, such as `to_delta`.
"""

from ottla.pipelines.errors import PipelineError as PipelineError
from ottla.pipelines.order import deduplicate as deduplicate
from ottla.pipelines.order import latest_by_key as latest_by_key
from ottla.pipelines.progress import report_progress as report_progress
from ottla.pipelines.sinks.registered import *
from ottla.pipelines.source.topic import rejected as rejected
from ottla.pipelines.source.topic import topic as topic
from ottla.pipelines.spark.start import session as session
