"""Where a new query starts: an explicit offset for each partition, in Spark's own file.

`<checkpoint>/sources/<number>/0` is a zero byte, the line `v1`, and the offsets as JSON,
`{"topic": {"0": 4711}}`. Spark's Kafka source reads it when a query has no batch yet, and asks the
brokers only if the file is missing (KafkaMicroBatchStream, KafkaSourceInitialOffsetWriter).

Spark's class writes a temporary file and renames it: a crash leaves the old file, the new one or
none. A query that has not planned a batch has read nothing, so the next start writes it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState, offsets_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.source.source import Source, Starting


def read_starting(starting: Any) -> Starting:
    """Check the argument `starting` of `topic`; raises PipelineError."""
    if isinstance(starting, str) and starting in ("earliest", "latest", "table"):
        return starting
    if isinstance(starting, datetime):
        if starting.tzinfo is None:
            raise PipelineError(
                f"starting={starting.isoformat()} has no time zone: write "
                "datetime(..., tzinfo=timezone.utc)"
            )
        return starting
    if isinstance(starting, Mapping) and starting:
        pairs = list(starting.items())
        if all(_is_count(partition) and _is_count(offset) for partition, offset in pairs):
            return dict(pairs)
    raise PipelineError(
        f"starting={starting!r}: write 'earliest', 'latest', 'table', a datetime, or an offset "
        "for each partition, such as {0: 4711, 1: 815}"
    )


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def starting_offsets(source: Source, state: TopicState) -> dict[int, int]:
    """Return the offset at which each partition starts, for all starts but "table".

    Asks the brokers again for a datetime. Raises PipelineError for offsets that the topic does
    not hold.
    """
    starting = source.starting
    assert starting != "table", "only the run knows what the table holds"
    if isinstance(starting, datetime):
        return offsets_at(source.kafka, source.name, starting)
    if isinstance(starting, dict):
        _check_offsets(starting, state)
        return dict(starting)
    return dict(state.latest if starting == "latest" else state.earliest)


def _check_offsets(starting: Mapping[int, int], state: TopicState) -> None:
    if set(starting) != set(state.earliest):
        raise PipelineError(
            f"starting= names the partitions {_listed(starting)}; the topic {state.name} has "
            f"{_listed(state.earliest)}: give an offset for each of them"
        )
    for partition, offset in sorted(starting.items()):
        first, last = state.earliest[partition], state.latest[partition]
        if not first <= offset <= last:
            raise PipelineError(
                f"starting={{{partition}: {offset}}}: partition {partition} of the topic "
                f"{state.name} holds the offsets {first} to {last}; give one of these"
            )


def _listed(partitions: Mapping[int, int]) -> str:
    return ", ".join(map(str, sorted(partitions)))


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
    jvm: Any = spark._jvm
    kafka: Any = jvm.org.apache.spark.sql.kafka010
    folder = f"{checkpoint_location.rstrip('/')}/sources/{index}"
    text = json.dumps(
        {
            topic: {str(partition): offset for partition, offset in partitions.items()}
            for topic, partitions in offsets.items()
        }
    )
    writer = kafka.KafkaSourceInitialOffsetWriter(spark._jsparkSession, folder)
    writer.purgeAfter(-1)
    first = kafka.KafkaSourceOffset(kafka.JsonUtils.partitionOffsets(text))
    assert writer.add(0, first), "another process writes this checkpoint"
