"""Where the columns of a streaming frame come from, followed through Spark's analyzed plan.

A column is followed by its expression's id from the frame down to a stream, as long as it stays
what it is: through projections that only name it, filters, joins and the parts of a union.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.source import OPTION, SOURCES
from ottla.pipelines.spark.jvm.plan import Expression, Node, plan_of
from ottla.pipelines.target.record_position import (
    EXPLODED,
    JOINED,
    JOINED_STREAMS,
    Constant,
    Origin,
    Origins,
    RecordPosition,
    Stream,
    position_by_name,
    position_by_origin,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPUTED: Final[Origins] = (None,)
_ONE_LEFT_ROW: Final = ("LeftSemi", "LeftAnti")
"""The joins that give a row of the left side at most once."""
_MANY_ROWS: Final = ("Generate", "Expand", "LateralJoin")


def position_of(frame: DataFrame) -> RecordPosition:
    """Return which columns of a frame say of which record a row is."""
    if not frame.isStreaming:
        return position_by_name(frame.schema)
    return position_by_origin(frame.schema, ColumnOrigins(frame).of)


class ColumnOrigins:
    """The columns of one frame."""

    def __init__(self, frame: DataFrame) -> None:
        self._plan = plan_of(frame)
        self._found: dict[str, Origins] = {}
        self._output = {one.name: one for one in reversed(self._plan.output)}
        self._projected: dict[Node, dict[int, Expression]] = {}
        self._streams: list[tuple[Node, Stream]] = []
        self._named: dict[int, Node] = {}  # the queries of WITH, by their number

    def of(self, name: str) -> Origins:
        """Return where a column comes from, for each part of a union."""
        if name not in self._found:
            column = self._output.get(name)
            self._found[name] = _COMPUTED if column is None else self._follow(self._plan, column)
        return self._found[name]

    def _follow(self, node: Node, column: Expression) -> Origins:
        """Return where an output column of a node comes from."""
        kind = node.kind
        if kind == "Project":
            return self._projection(node, column)
        if kind == "Union":
            position = _position(node, column)
            return tuple(
                origin
                for child in node.children
                for origin in self._follow(child, child.output[position])
            )
        if kind == "WithCTE":
            self._named |= node.queries
            return self._follow(node.plan, column)
        if kind == "CTERelationRef":
            query = self._named[node.query]
            return self._follow(query, query.output[_position(node, column)])
        if kind == "Aggregate":
            return _COMPUTED
        children = node.children
        if not children:
            return self._leaf(node, column)
        for child in children:
            if child.has(column):
                return _passing(self._follow(child, column), _passed(node, kind))
        return _COMPUTED

    def _projection(self, node: Node, column: Expression) -> Origins:
        if node not in self._projected:
            self._projected[node] = {one.number: one for one in node.projection}
        expression = self._projected[node].get(column.number)
        while expression is not None and (kind := expression.kind) == "Alias":
            expression = expression.child
        if expression is None:
            return _COMPUTED
        if kind == "AttributeReference":
            return self._follow(node.children[0], expression)
        if kind == "Literal" and (text := expression.text) is not None:
            return (Constant(text),)
        return _COMPUTED

    def _leaf(self, node: Node, column: Expression) -> Origins:
        if not node.is_streaming:
            return _COMPUTED
        for known, stream in self._streams:
            if known == node:
                return (Origin(stream, column.name),)
        self._streams.append((node, _stream(len(self._streams), node)))
        return (Origin(self._streams[-1][1], column.name),)


def _stream(number: int, node: Node) -> Stream:
    """Return what a leaf of the plan reads."""
    if node.kind != "StreamingRelationV2" or node.source != "kafka":
        return Stream(number)
    source = SOURCES.get(node.option(OPTION))
    if source is not None:
        return Stream(number, source.name)
    names = node.option("subscribe").split(",")
    is_one = len(names) == 1 and names[0] != ""
    return Stream(number, names[0].strip() if is_one else "", has_several=not is_one)


def _passed(node: Node, kind: str) -> str:
    """Return what a node makes of the rows of its child, empty if one row stays at most one."""
    if kind in _MANY_ROWS:
        return EXPLODED
    if kind != "Join" or node.join in _ONE_LEFT_ROW:
        return ""
    return JOINED_STREAMS if all(child.is_streaming for child in node.children) else JOINED


def _passing(origins: Origins, passed: str) -> Origins:
    if not passed:
        return origins
    return tuple(
        Origin(one.stream, one.column, one.passes | {passed}) if isinstance(one, Origin) else one
        for one in origins
    )


def _position(node: Node, column: Expression) -> int:
    return [one.number for one in node.output].index(column.number)
