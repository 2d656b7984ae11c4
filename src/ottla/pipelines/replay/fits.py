"""Which pipelines can send rejected rows again, and how their tables with keys order them.

A replayed record comes after newer ones. A table without keys takes it all the same. A history
finds its place among the versions. A table with keys must compare it with the row of its key, by
`order_by` or else by the offset; so it is refused where a deletion leaves nothing to compare with,
or where offsets do not say which record is newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.replay.note import NOTE, Begun
from ottla.pipelines.spark.jvm.plan import nodes
from ottla.pipelines.target.keyed_table import KeyedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GATHER: Final = {
    "Aggregate": "an aggregation",
    "Distinct": "DISTINCT",
    "Deduplicate": "dropDuplicates",
    "DeduplicateWithinWatermark": "dropDuplicates",
    "EventTimeWatermark": "a watermark",
    "FlatMapGroupsWithState": "a state of its own",
    "FlatMapGroupsInPandasWithState": "a state of its own",
    "TransformWithState": "a state of its own",
    "TransformWithStateInPandas": "a state of its own",
    "TransformWithStateInPySpark": "a state of its own",
    "GlobalLimit": "a limit",
    "LocalLimit": "a limit",
}
"""Steps of a stream whose result for a record depends on others, and what people call them."""

MAX_TAKEN_OUT: Final = 100
"""So many times the rows of one replay may be taken out of the target again."""


def check_rows(name: str, frame: DataFrame) -> None:
    """Refuse a query in which what becomes of a record depends on other records.

    `frame` is the query's stream. Raises PipelineError.
    """
    for node in nodes(frame):
        if not node.is_streaming:
            continue
        found = _GATHER.get(node.kind)
        if node.kind == "Join" and all(child.is_streaming for child in node.children):
            found = "a join of two streams"
        if found is not None:
            raise PipelineError(
                f"{name} has {found}, in which a record counts together with others: its rejected "
                "rows cannot be sent again alone. Read the topic again, with a new checkpoint and "
                "a new table"
            )


def ordered(name: str, keyed: KeyedTable | None, *, is_topic_replaced: bool) -> KeyedTable | None:
    """Return how a table orders records that come late, None for a table without keys.

    `is_topic_replaced`: the topic may have been created again, with the same offsets. Raises
    PipelineError. Pure.
    """
    if keyed is None or keyed.history or keyed.is_result:
        return keyed  # results are refused for their aggregation
    if keyed.has_tombstones and keyed.deletes != "mark":
        raise PipelineError(
            f"{name} deletes rows (deletes='remove'), and a deleted key leaves nothing that says "
            "whether a rejected record is older than its deletion: sent again, it could bring the "
            "row back. Produce the records again, or use deletes='mark' with a new table and "
            "checkpoint"
        )
    if keyed.order_by is not None:
        return keyed
    if keyed.has_truncations:
        raise PipelineError(
            f"{name} truncates its table without order_by, and nothing says whether a rejected "
            "record is older than a truncation. Produce the records again, or name the column that "
            "orders them in order_by"
        )
    if not keyed.position or keyed.is_shared:
        raise PipelineError(
            f"The rows of {name} do not say which record of a key is the last: name the column "
            "that orders them in order_by"
        )
    if is_topic_replaced:
        raise PipelineError(
            f"{name} orders the records of a key by their offsets, and its topic was created again "
            "or begun again (on_lost='skip'), so that a rejected record may have a greater offset "
            "than a newer one. Produce the records again"
        )
    return replace(keyed, order_by=keyed.position[-1])


def check_partitions(keyed: KeyedTable | None, rows: DataFrame, there: DataFrame | None) -> None:
    """Refuse a key whose records lie in several partitions, where offsets alone order them.

    `rows` are those to be written, `there` those of the table. Raises PipelineError.
    """
    if keyed is None or keyed.history or keyed.order_by not in keyed.position[-1:]:
        return
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    names = [*keyed.keys, *keyed.position[:-1]]
    every = rows.select(*names)
    if there is not None:
        every = every.unionByName(there.select(*names).join(rows, [*keyed.keys], "left_semi"))
    partitions = F.count_distinct(F.struct(*keyed.position[:-1])).alias("ottla_partitions")
    row = every.groupBy(*keyed.keys).agg(partitions).where("ottla_partitions > 1").first()
    if row is not None:
        key = ", ".join(f"{name} = {row[name]}" for name in keyed.keys)
        raise PipelineError(
            f"The key {key} has records in several partitions, whose offsets do not say which one "
            "is the last: name the column that orders them in order_by"
        )


def check_known(begun: Begun, held: Held, checkpoint: str) -> None:
    """Refuse to end a replay where the target may have forgotten that it has the rows, and where
    they were taken out of it: it may skip them as rows that it has.

    `held`: what it has of the replay. Raises PipelineError. Pure.
    """
    if held.taken_out:
        raise PipelineError(
            f"A replay was cut off, and its {begun.rows} rows were taken out of {held.name} by "
            f"{held.taken_out_by}. To send them again, delete {NOTE.name} in {checkpoint} and "
            "start again"
        )
    if held.batch is None and held.since_ms is not None and begun.begun_ms < held.since_ms:
        raise PipelineError(
            f"A replay was cut off, and whether {held.name} has its {begun.rows} rows is not "
            f"known: {held.forgets}. Look for them there. If it has none, delete {NOTE.name} in "
            f"{checkpoint} and start again"
        )


def already_written(name: str, rejected: str) -> str:
    """Return that the target has the rows of a replay that are not marked as sent. Pure."""
    return (
        f"A replay has written rows to {name} and was cut off before {rejected} said so, and this "
        "checkpoint does not know it: to send them again would write them twice. End it with the "
        "checkpoint by which it began, or take its rows out by RESTORE TABLE or a rollback. "
        f"Otherwise make {rejected} again, without the rows that {name} has"
    )


def check_columns(keyed: KeyedTable | None, names: Iterable[str], checkpoint: str) -> None:
    """Refuse to end a replay whose rows lack columns that the pipeline has by now, where they are
    merged. `names`: the columns of its rows. Raises PipelineError. Pure.
    """
    if keyed is None:
        return
    there = {name.lower() for name in names}
    missing = [name for name in (*keyed.columns, *keyed.marks) if name.lower() not in there]
    if missing:
        raise PipelineError(
            f"A replay was cut off, and the rows that it has computed lack the column {missing[0]} "
            "of the pipeline: end it with the query by which it began, or delete "
            f"{NOTE.name} in {checkpoint} and start again"
        )


def only_one(name: str, topics: Iterable[str]) -> None:
    """Refuse a query of several topics, or of none. Raises PipelineError. Pure."""
    found = list(topics)
    if len(found) != 1:
        read = f"reads {', '.join(found)}" if found else "reads no topic"
        raise PipelineError(
            f"{name} {read}, and rejected rows are sent again to a pipeline of one topic"
        )
