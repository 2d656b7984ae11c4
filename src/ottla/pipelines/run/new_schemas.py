"""Schemas that data has and a query's plan does not know: registered after it was planned.

Such data fails the batch before anything of it is written (`source.framed_columns`). Its range is
then read once for all ids that it has, so that one new plan knows them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.marks import UNKNOWN_ID
from ottla.pipelines.registry.framed import MAX_MISSING, Framed
from ottla.pipelines.rejects.read_again import read_range, whole_part
from ottla.pipelines.source.framed_columns import looks_framed
from ottla.pipelines.source.registry_schema import note_met
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.registry.framing import HEAD_BYTES, id_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.source.source import Source
    from ottla.pipelines.spark.jvm.execution import Execution

MAX_FOUND: Final = 2 * MAX_MISSING
"""The most ids that one look at a batch finds."""


def has_new_schema(causes: Sequence[Cause]) -> bool:
    """Tell whether a failure is data with an id that the plan does not know."""
    return any(UNKNOWN_ID in cause.message for cause in causes)


@contextlib.contextmanager
def noting_new_schemas(
    spark: SparkSession,
    execution: Execution,
    sources: Sequence[Source],
    undo: Callable[[], None],
) -> Iterator[None]:
    """Note the ids in the data of a batch when it fails for one that the plan does not know.

    `undo` is called then: nothing of the batch is written.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        if has_new_schema(causes_of(error)):
            undo()
            for source in sources:
                _note(spark, execution, source)
        raise


def _note(spark: SparkSession, execution: Execution, source: Source) -> None:
    span = execution.range_of(source.name)
    if span is None or source.registry is None:
        return
    raw = read_range(spark, source.kafka, whole_part(source, "", *span))
    for name, framed in source.framed.items():
        column = raw[name]
        heads = raw.where(looks_framed(column)).select(column.substr(1, HEAD_BYTES).alias("head"))
        found = {id_of(bytes(row["head"])) for row in heads.distinct().limit(MAX_FOUND).collect()}
        note_met(source.registry, {one for one in found if one is not None} - _known(framed))


def _known(framed: Framed) -> set[int]:
    return {one.id for one in framed.branches} | set(framed.missing)
