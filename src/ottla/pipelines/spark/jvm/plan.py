"""A frame's analyzed plan (Catalyst's LogicalPlan) and its expressions, by Spark's own names.

Two of them are equal where Spark says so. Each property asks the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MAX_FIELDS: Final = 100_000
"""So many parts of a list does a text name."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """What Spark's plans and expressions are made of."""

    _java: Any

    @property
    def kind(self) -> str:
        """The name of its class without the package."""
        return str(self._java.getClass().getSimpleName())


@dataclass(frozen=True, slots=True)
class Expression(TreeNode):
    """A column, or how it is computed."""

    @property
    def name(self) -> str:
        """The name of a column."""
        return str(self._java.name())

    @property
    def number(self) -> int:
        """The number by which Spark knows a column in the whole plan."""
        return int(self._java.exprId().id())

    @property
    def child(self) -> Expression:
        """What an Alias names, and of what a GetStructField takes a field."""
        return Expression(self._java.child())

    @property
    def field(self) -> str:
        """The field that a GetStructField takes."""
        return str(self._java.extractFieldName())

    @property
    def struct(self) -> Expression:
        """The struct whose fields an UpdateFields changes."""
        return Expression(self._java.structExpr())

    @property
    def text(self) -> str | None:
        """The value of a Literal that is a text, None for all others."""
        if self._java.dataType().typeName() != "string":
            return None
        value = self._java.value()
        return None if value is None else str(value.toString())


@dataclass(frozen=True, slots=True)
class Node(TreeNode):
    """A step of the plan: what makes rows, or changes those of its children."""

    @property
    def children(self) -> list[Node]:
        return [Node(one) for one in in_list(self._java.children())]

    @property
    def output(self) -> list[Expression]:
        """The columns of its rows."""
        return [Expression(one) for one in in_list(self._java.output())]

    @property
    def projection(self) -> list[Expression]:
        """How a Project makes its columns."""
        return [Expression(one) for one in in_list(self._java.projectList())]

    @property
    def is_streaming(self) -> bool:
        return bool(self._java.isStreaming())

    def has(self, column: Expression) -> bool:
        """Tell whether its rows have a column."""
        return bool(self._java.outputSet().contains(column._java))

    @property
    def source(self) -> str:
        """The format that a StreamingRelationV2 reads, such as kafka."""
        return str(self._java.sourceName())

    def option(self, name: str) -> str:
        """Return an option of the reader of a StreamingRelationV2, empty where it has none."""
        return str(self._java.extraOptions().get(name) or "")

    @property
    def queries(self) -> dict[int, Node]:
        """The queries of WITH that a WithCTE defines, by number."""
        return {int(one.id()): Node(one.child()) for one in in_list(self._java.cteDefs())}

    @property
    def plan(self) -> Node:
        """What a WithCTE computes with its queries."""
        return Node(self._java.plan())

    @property
    def query(self) -> int:
        """The number of the query of WITH to which a CTERelationRef refers."""
        return int(self._java.cteId())

    @property
    def text(self) -> str:
        """What it does, in one line, with the numbers that columns have in this plan."""
        return str(self._java.simpleString(MAX_FIELDS))

    @property
    def join(self) -> str:
        """The type of a Join, such as LeftSemi."""
        return str(self._java.joinType().toString())


def plan_of(frame: DataFrame) -> Node:
    """Return the root of a frame's analyzed plan."""
    return Node(java_frame(frame).queryExecution().analyzed())


def described(frame: DataFrame) -> Iterator[str]:
    """Return the steps of a frame's plan as lines; of a stream that is read only its kind."""
    for node in nodes(frame):
        is_read = node.is_streaming and not node.children
        yield node.kind if is_read else node.text


def nodes(frame: DataFrame) -> Iterator[Node]:
    """Return the nodes of a frame's plan."""
    plans = [plan_of(frame)]
    while plans:
        node = plans.pop()
        yield node
        plans += node.children


def in_list(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]
