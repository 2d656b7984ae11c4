"""Where a new query starts, in Spark's own file.

`<checkpoint>/sources/<number>/0` is a zero byte, the line `v1`, and the offsets as JSON,
`{"topic": {"0": 4711}}`. Spark's Kafka source reads it when a query has no batch yet, and asks the
brokers only if the file is missing (KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter).

Spark's class writes a temporary file and renames it: a crash leaves the old file, the new one or
none. A query that has not planned a batch has read nothing, so the next start writes it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KAFKA: Final = "org.apache.spark.sql.kafka010"


def write_initial_offsets(
    spark: SparkSession,
    checkpoint_location: str,
    index: int,
    offsets: Mapping[str, Mapping[int, int]],
) -> None:
    """Make the source with this number start at these offsets, in a new checkpoint.

    `offsets` is {topic: {partition: offset}} with all partitions: Spark reads one that is missing
    from its beginning. Replaces what an earlier start wrote; call it only while the checkpoint
    has planned no batch.
    """
    folder = f"{checkpoint_location.rstrip('/')}/sources/{index}"
    text = json.dumps(
        {
            topic: {str(partition): offset for partition, offset in partitions.items()}
            for topic, partitions in offsets.items()
        }
    )
    writer = java_class(spark, f"{_KAFKA}.KafkaSourceInitialOffsetWriter")(
        java_session(spark), folder
    )
    writer.purgeAfter(-1)
    parsed = java_class(spark, f"{_KAFKA}.JsonUtils").partitionOffsets(text)
    first = java_class(spark, f"{_KAFKA}.KafkaSourceOffset")(parsed)
    assert writer.add(0, first), "another process writes this checkpoint"
