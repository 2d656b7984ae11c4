"""The newest records of a topic, parsed without Spark: does the schema fit what is there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.records import RangeReader
from ottla.pipelines.registry.registered import is_wanted
from ottla.pipelines.source.ddl import DdlError, Kind, read_ddl
from ottla.pipelines.source.debezium import DEBEZIUM, SourceFormat, envelope_kind
from ottla.pipelines.source.judge import Sample, judge_all
from ottla.pipelines.source.words import UnknownFields

if TYPE_CHECKING:
    from ottla.pipelines.kafka.brokers import TopicState
    from ottla.pipelines.kafka.settings import KafkaSettings

MAX_RECORDS: Final = 100


def newest_ranges(
    state: TopicState, limit: int = MAX_RECORDS
) -> tuple[dict[int, int], dict[int, int]]:
    """Return first and next offsets of the last records of each partition, `limit` in all. Pure.

    Partitions with few records leave their share to the others. A compacted topic has fewer
    records than offsets.
    """
    held = {
        number: end - state.earliest[number]
        for number, end in state.latest.items()
        if end > state.earliest[number]
    }
    first: dict[int, int] = {}
    left = limit
    for index, number in enumerate(sorted(held, key=lambda one: (held[one], one))):
        share = min(held[number], left // (len(held) - index))
        if share:
            first[number] = state.latest[number] - share
            left -= share
    return first, {number: state.latest[number] for number in first}


def parse_newest(
    kafka: KafkaSettings,
    state: TopicState,
    schema: str | None,
    key_schema: str | None,
    unknown_fields: UnknownFields = "drop",
    limit: int = MAX_RECORDS,
    *,
    source_format: SourceFormat = "plain",
) -> Sample | str:
    """Return what becomes of the newest records; a text says why they are not checked.

    `schema` and `key_schema` are DDL, as `topic` takes them.
    """
    if any(text is not None and is_wanted(text) for text in (schema, key_schema)):
        return "the schema is in a registry"
    kinds: dict[str, Kind | None] = {}
    try:
        kinds["key"] = read_ddl("binary" if key_schema is None else key_schema)
        kinds["value"] = read_ddl("string" if schema is None else schema)
    except DdlError as error:
        return str(error)
    row = kinds["value"]
    if source_format == DEBEZIUM and row is not None and row.name == "struct":
        kinds["value"] = envelope_kind(row)
    first, end = newest_ranges(state, limit)
    try:
        with RangeReader(kafka, "the newest records") as reader:
            records = reader.read(state.name, first, end) if end else []
    except PipelineError as error:
        return str(error)
    if records is None:
        return "the newest records are too large"
    return judge_all(((record.key, record.value) for record in records), kinds, unknown_fields)
