"""Which ranges of a topic hold rejected rows, and how they are read a second time.

Spark counts rejected rows while it reads a batch, and notes in which blocks of offsets they lie: a
part is one or more of these, or the whole batch where its counts are not known. What a note of an
earlier run names is read as far as the broker still holds it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.kafka.records import RangeReader, Record
from ottla.pipelines.registry.framed import Framed, read_framed
from ottla.pipelines.rejects.pending import Part
from ottla.pipelines.source.observed import BLOCKS, READ, ranges_of
from ottla.pipelines.source.raw import raw_frame
from ottla.pipelines.source.source import REJECTED, Source
from ottla.pipelines.source.topic import only_rejected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from ottla.pipelines.kafka.brokers import TopicState
    from ottla.pipelines.kafka.settings import KafkaSettings

log: Final = logging.getLogger("ottla.pipelines")

MAX_READ_HERE: Final = 10_000
"""So many offsets are read by the driver; more are read by Spark."""


def find_part(
    source: Source,
    topic_id: str,
    span: tuple[dict[int, int], dict[int, int]] | None,
    counted: dict[str, Any] | None,
    *,
    reads_all: bool,
) -> Part | None:
    """Return what is to be read again of a source in this batch, None for nothing.

    Spark's count is right if it read the whole batch: nothing in the plan stops early, or it has
    seen as many rows as the range has offsets (a compacted topic has fewer). The read is then
    narrowed to where the rejected rows lie.
    """
    if span is None:
        return None
    first, end = span
    whole = whole_part(source, topic_id, first, end)
    if counted is None:
        return whole
    offsets = sum(end[partition] - max(first[partition], 0) for partition in end)
    if not reads_all and counted[READ] != offsets:
        return whole
    if not counted[REJECTED]:
        return None
    ranges = ranges_of(counted[BLOCKS])
    return replace(
        whole,
        first={partition: max(first[partition], ranges[partition][0]) for partition in ranges},
        end={partition: min(end[partition], ranges[partition][1]) for partition in ranges},
        count=int(counted[REJECTED]),
    )


def whole_part(source: Source, topic_id: str, first: dict[int, int], end: dict[int, int]) -> Part:
    """Return a range of a source in which any row may be rejected."""
    schemas = {name: schema.jsonValue() for name, schema in source.schemas.items()}
    how = source.unknown_fields, source.source_format
    return Part(source.name, topic_id, schemas, dict(first), dict(end), None, *how)


def readable(part: Part, topic: TopicState | None) -> Part | None:
    """Return the part that the broker still holds; log the offsets that it does not hold."""
    now = topic if topic is not None and topic.topic_id == part.topic_id else None
    first: dict[int, int] = {}
    ends: dict[int, int] = {}
    for number, end in part.end.items():
        begin = max(part.first[number], 0)
        held = min(max(now.earliest.get(number, end), begin), end) if now else end
        last = max(min(now.ends.get(number, held), end), held) if now else end
        for one, other in ((begin, held), (last, end)):
            if one < other:
                log.warning(
                    "The broker no longer holds the offsets %d to %d of %s-%d: rejected rows among "
                    "them, which were not written, are lost",
                    one, other - 1, part.topic, number,
                )  # fmt: skip
        if held < last:
            first[number], ends[number] = held, last
    if not first:
        return None
    is_whole = first == {n: max(at, 0) for n, at in part.first.items()} and ends == part.end
    return replace(part, first=first, end=ends, count=part.count if is_whole else None)


def rejected_frames(
    spark: SparkSession, kafka: Mapping[str, KafkaSettings], parts: Iterable[Part]
) -> list[DataFrame]:
    """Return the rejected rows of these parts; those of one topic and schema share a plan.

    `kafka`: the cluster of each topic.
    """
    alike: dict[str, list[Part]] = {}
    for part in parts:
        how = json.dumps([part.topic, part.schemas, part.unknown_fields, part.source_format])
        alike.setdefault(how, []).append(part)
    frames = []
    for group in alike.values():
        name = group[0].topic
        source = Source(
            name,
            kafka[name],
            read_schemas(group[0].schemas),
            unknown_fields=group[0].unknown_fields,
            source_format=group[0].source_format,
        )
        frames.append(only_rejected(read_parts(spark, source.kafka, group), source))
    return frames


def read_schemas(schemas: Mapping[str, Any]) -> dict[str, DataType | Framed]:
    """Return the types of key and value from the JSON that a part has."""
    from pyspark.sql.types import StructType

    found: dict[str, DataType | Framed] = {}
    for column, document in schemas.items():
        framed = read_framed(document)
        # DataType has no reader of its own for JSON of any type; a field of a struct does.
        field = {"name": column, "type": document, "nullable": True, "metadata": {}}
        found[column] = framed or (
            StructType.fromJson({"type": "struct", "fields": [field]})[column].dataType
        )
    return found


def read_parts(spark: SparkSession, kafka: KafkaSettings, parts: list[Part]) -> DataFrame:
    """Return Kafka's raw rows of some parts of one topic.

    Short parts are read here, for a scan of Spark's takes longer than they do.
    """
    if (found := read_here(kafka, parts)) is not None:
        return raw_frame(spark, found)
    ranges = [read_range(spark, kafka, part) for part in parts]
    return reduce(lambda one, other: one.union(other), ranges)


def _offsets_in(parts: Iterable[Part]) -> int:
    return sum(end - max(part.first[n], 0) for part in parts for n, end in part.end.items())


def read_here(kafka: KafkaSettings, parts: list[Part]) -> list[Record] | None:
    """Return the records of some parts of one topic, None where they are too many or too large.

    Raises PipelineError.
    """
    if _offsets_in(parts) > MAX_READ_HERE:
        return None
    found: list[Record] = []
    with RangeReader(kafka) as reader:
        for part in parts:
            records = reader.read(part.topic, part.first, part.end)
            if records is None:
                return None
            found += records
    return found


def read_range(spark: SparkSession, kafka: KafkaSettings, part: Part) -> DataFrame:
    """Return Kafka's raw rows of a part of a topic."""
    return (
        spark.read.format("kafka")
        .options(**kafka.for_spark())
        .option("assign", json.dumps({part.topic: sorted(part.end)}))
        .option("startingOffsets", json.dumps({part.topic: part.first}))
        .option("endingOffsets", json.dumps({part.topic: part.end}))
        .option("includeHeaders", True)
        .load()
    )
