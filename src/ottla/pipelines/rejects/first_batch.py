"""The first batch of a new query: does the schema fit the topic?

A wrong schema rejects every row, and the query goes on without a failure. So before the first batch
of a checkpoint is written, up to MAX_RECORDS of its records are parsed. Where more than half of
them are rejected, the query stops. Nothing is written yet: after the schema is mended, the same
checkpoint begins with the same batch.

Most schemas fit, and most records can be judged without Spark, which plans and compiles the parse
of the sample first. So Spark parses it only where half of the records are not sure to fit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import MostlyRejectedError, PipelineError
from ottla.pipelines.kafka.brokers import TopicState
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.rejects.pending import Part
from ottla.pipelines.rejects.read_again import read_here, read_range, whole_part
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.judge import judge_all, most_frequent
from ottla.pipelines.source.newest import newest_ranges
from ottla.pipelines.source.parse import REASON, parse
from ottla.pipelines.source.raw import raw_frame
from ottla.pipelines.source.source import Source
from ottla.pipelines.spark.jvm.execution import Execution

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.kafka.records import Record

log: Final = logging.getLogger("ottla.pipelines")

MAX_RECORDS: Final = 1_000


def check_first_batch(spark: SparkSession, sources: Iterable[Source], execution: Execution) -> None:
    """Raise MostlyRejectedError where the schema of a source fits less than half of the batch."""
    for source in sources:
        span = execution.range_of(source.name) if source.can_reject else None
        part = None if span is None else _sample(source, *span)
        if part is None:
            continue
        try:
            records = read_here(source.kafka, [part])
        except PipelineError as error:
            log.warning("The first batch of %s is not checked: %s", source.name, error)
            continue
        if records is not None and half_is_sure_to_fit(records, source):
            continue
        if records is not None:
            raw = raw_frame(spark, records)
        else:
            raw = read_range(spark, source.kafka, part)
        parsed = parse(
            raw,
            source.schemas,
            name_fields=True,
            unknown_fields=source.unknown_fields,
            source_format=source.source_format,
        )
        rows = parsed.select(REASON).collect()
        check_reasons(source.name, [row[0] for row in rows])


def half_is_sure_to_fit(records: list[Record], source: Source) -> bool:
    """Tell whether at least half of some records are sure to parse by the schemas of a source.

    Of records that a schema registry or Debezium frames only Spark can tell.
    """
    if source.is_debezium:
        return False
    kinds = {
        name: None if isinstance(schema, Framed) else kind_of(schema)
        for name, schema in source.schemas.items()
    }
    pairs = ((record.key, record.value) for record in records)
    sample = judge_all(pairs, kinds, source.unknown_fields)
    return sample.parsed * 2 >= sample.records


def check_reasons(topic: str, reasons: list[str | None]) -> None:
    """Raise MostlyRejectedError where more than half of some records have a reason. Pure."""
    rejected = [reason for reason in reasons if reason is not None]
    if len(rejected) * 2 > len(reasons):
        raise MostlyRejectedError(
            f"{len(rejected)} of {len(reasons)} records of {topic} in the first batch do not "
            f"parse, most of them for this reason: {most_frequent(rejected)}. Nothing is written "
            "yet: mend the schema and start again, or write on_rejects='continue' to write the "
            "others"
        )


def _sample(source: Source, first: dict[int, int], end: dict[int, int]) -> Part | None:
    """Return the last records of each partition in the batch, None for an empty batch."""
    held = {number: max(first[number], 0) for number in end}
    starts, ends = newest_ranges(TopicState(source.name, "", held, end), MAX_RECORDS)
    return whole_part(source, "", starts, ends) if ends else None
