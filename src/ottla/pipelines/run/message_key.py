"""Whether the key of a table is the key of the topic's messages, found in the query's plan.

Then, and only then, the journey of a message can say what became of its row: the broker knows the
messages of a key, and not the columns of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.destination import Destination
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.source.parse import PARSED_KEY
from ottla.pipelines.spark.jvm.plan import Expression, nodes, plan_of
from ottla.pipelines.target.record_position import TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.source.source import Source
    from ottla.pipelines.target.port import Sink

_MAX_STEPS: Final = 100


def destination_of(sink: Sink, frame: DataFrame, sources: Sequence[Source]) -> Destination:
    """Return what the journey says of a sink that gets the rows of a frame."""
    keyed = sink.keyed
    if keyed is None or keyed.is_result:
        return sink.destination
    columns = _Columns(frame)
    is_topics_time = keyed.order_by and columns.root_of(keyed.order_by) == (TIMESTAMP,)
    return replace(
        sink.destination,
        rows="history" if keyed.history else "upsert",
        order="offset" if keyed.order_by is None else "timestamp" if is_topics_time else "column",
        deletes=keyed.deletes if keyed.has_tombstones else "skip",
        # Which messages make a version of a history that tracks columns, or which truncation took
        # a row, the broker cannot say.
        by_message_key=len(sources) == 1
        and not keyed.track
        and not keyed.has_truncations
        and _is_message_key(columns, keyed.keys, sources[0]),
    )


def _is_message_key(columns: _Columns, keys: Sequence[str], source: Source) -> bool:
    from pyspark.sql.types import StructType

    schema = source.schemas["key"]
    if isinstance(schema, Framed):
        return False  # a key has other bytes with each schema that it was written by
    wanted: set[tuple[str, ...] | None] = {(PARSED_KEY,)}
    if isinstance(schema, StructType):
        wanted = {(PARSED_KEY, field.name) for field in schema.fields}
    return {columns.root_of(key) for key in keys} == wanted


class _Columns:
    """How the columns of a frame are defined, from its plan."""

    def __init__(self, frame: DataFrame) -> None:
        self._output = plan_of(frame).output
        self._definitions: dict[int, Expression] = {}
        self._of_topics: set[int] = set()
        for node in nodes(frame):
            if node.kind == "Project":
                for column in node.projection:
                    if column.kind == "Alias":
                        self._definitions[column.number] = column.child
            # A query of WITH has its columns where it is defined.
            elif node.kind != "CTERelationRef" and node.is_streaming and not node.children:
                self._of_topics |= {column.number for column in node.output}

    def root_of(self, name: str) -> tuple[str, ...] | None:
        """Return from which column of a topic a column comes unchanged, and from which field of it.

        None where it is computed, or does not come from there.
        """
        expression = next((one for one in self._output if one.name == name), None)
        fields: tuple[str, ...] = ()
        for _ in range(_MAX_STEPS):
            if expression is None:
                return None
            kind = expression.kind
            if kind == "AttributeReference":
                number = expression.number
                if expression.name == PARSED_KEY or number in self._of_topics:
                    return (expression.name, *fields)
                expression = self._definitions.get(number)
            elif kind == "GetStructField":
                fields = (expression.field, *fields)
                expression = expression.child
            elif kind == "UpdateFields":  # it drops the corrupt text beside the parsed fields
                expression = expression.struct
            else:
                return None
        return None
