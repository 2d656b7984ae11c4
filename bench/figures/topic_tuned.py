"""The tuned way from topic to topic: Spark's own Kafka sink with a producer that makes batches."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures import topic_plain
from bench.figures.delta_tuned import open_session
from bench.figures.topic_plain import count

__all__ = ["count", "open_session", "start"]
PRODUCER: Final = {"kafka.linger.ms": "5", "kafka.batch.size": "1000000"}


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
    *,
    target: str,
) -> StreamingQuery:
    """Start the job: the rows as JSON, with the number as key."""
    return topic_plain.start(
        *(spark, address, topic, schema, folder, trigger, max_rows),
        target=target,
        producer=PRODUCER,
    )
