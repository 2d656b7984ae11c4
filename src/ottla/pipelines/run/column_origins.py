"""Where the columns of a streaming frame come from, followed through Spark's analyzed plan.

A column is followed by its expression's id from the frame down to a stream, as long as it stays
what it is: through projections that only name it, filters, joins and the parts of a union.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.sinks.record_place import (
    EXPLODED,
    JOINED,
    JOINED_STREAMS,
    Constant,
    Origin,
    Origins,
    RecordPlace,
    Stream,
    place_by_name,
    place_by_origin,
)
from ottla.pipelines.source.source import OPTION, SOURCES
from ottla.pipelines.spark.jvm.query_plan import in_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPUTED: Final[Origins] = (None,)
_ONE_LEFT_ROW: Final = ("LeftSemi", "LeftAnti")
"""The joins that give a row of the left side at most once."""
_MANY_ROWS: Final = ("Generate", "Expand", "LateralJoin")


def place_of(frame: DataFrame) -> RecordPlace:
    """Return which columns of a frame say of which record a row is."""
    if not frame.isStreaming:
        return place_by_name(frame.schema)
    return place_by_origin(frame.schema, ColumnOrigins(frame).of)


class ColumnOrigins:
    """The columns of one frame."""

    def __init__(self, frame: DataFrame) -> None:
        self._plan: Any = frame._jdf.queryExecution().analyzed()
        self._found: dict[str, Origins] = {}
        self._output = {str(one.name()): one for one in reversed(in_list(self._plan.output()))}
        self._projected: dict[Any, dict[int, Any]] = {}
        self._streams: list[tuple[Any, Stream]] = []
        self._named: dict[int, Any] = {}  # the queries of WITH, by their number

    def of(self, name: str) -> Origins:
        """Return where a column comes from, for each part of a union."""
        if name not in self._found:
            column = self._output.get(name)
            self._found[name] = _COMPUTED if column is None else self._follow(self._plan, column)
        return self._found[name]

    def _follow(self, node: Any, column: Any) -> Origins:
        """Return where an output column of a node comes from."""
        kind = _kind(node)
        if kind == "Project":
            return self._projection(node, column)
        if kind == "Union":
            position = _position(node, column)
            return tuple(
                origin
                for child in in_list(node.children())
                for origin in self._follow(child, child.output().apply(position))
            )
        if kind == "WithCTE":
            for each in in_list(node.cteDefs()):
                self._named[int(each.id())] = each.child()
            return self._follow(node.plan(), column)
        if kind == "CTERelationRef":
            query = self._named[int(node.cteId())]
            return self._follow(query, query.output().apply(_position(node, column)))
        if kind == "Aggregate":
            return _COMPUTED
        children = in_list(node.children())
        if not children:
            return self._leaf(node, column)
        for child in children:
            if child.outputSet().contains(column):
                return _passing(self._follow(child, column), _passed(node, kind))
        return _COMPUTED

    def _projection(self, node: Any, column: Any) -> Origins:
        if node not in self._projected:
            self._projected[node] = {_id(one): one for one in in_list(node.projectList())}
        expression: Any = self._projected[node].get(_id(column))
        while expression is not None and _kind(expression) == "Alias":
            expression = expression.child()
        kind = _kind(expression)
        if kind == "AttributeReference":
            return self._follow(node.child(), expression)
        if kind == "Literal" and expression.dataType().typeName() == "string":
            value = expression.value()
            return _COMPUTED if value is None else (Constant(str(value.toString())),)
        return _COMPUTED

    def _leaf(self, node: Any, column: Any) -> Origins:
        if not node.isStreaming():
            return _COMPUTED
        for known, stream in self._streams:
            if known.equals(node):
                return (Origin(stream, str(column.name())),)
        self._streams.append((node, _stream(len(self._streams), node)))
        return (Origin(self._streams[-1][1], str(column.name())),)


def _stream(number: int, node: Any) -> Stream:
    """Return what a leaf of the plan reads."""
    if _kind(node) != "StreamingRelationV2" or node.sourceName() != "kafka":
        return Stream(number)
    options = node.extraOptions()
    source = SOURCES.get(options.get(OPTION) or "")
    if source is not None:
        return Stream(number, source.name)
    names = (options.get("subscribe") or "").split(",")
    is_one = len(names) == 1 and names[0] != ""
    return Stream(number, names[0].strip() if is_one else "", has_several=not is_one)


def _passed(node: Any, kind: str) -> str:
    """Return what a node makes of the rows of its child, empty if one row stays at most one."""
    if kind in _MANY_ROWS:
        return EXPLODED
    if kind != "Join" or node.joinType().toString() in _ONE_LEFT_ROW:
        return ""
    both = node.left().isStreaming() and node.right().isStreaming()
    return JOINED_STREAMS if both else JOINED


def _passing(origins: Origins, passed: str) -> Origins:
    if not passed:
        return origins
    return tuple(
        Origin(one.stream, one.column, one.passes | {passed}) if isinstance(one, Origin) else one
        for one in origins
    )


def _position(node: Any, column: Any) -> int:
    return [_id(one) for one in in_list(node.output())].index(_id(column))


def _kind(node: Any) -> str:
    return "" if node is None else str(node.getClass().getSimpleName())


def _id(column: Any) -> int:
    return int(column.exprId().id())
