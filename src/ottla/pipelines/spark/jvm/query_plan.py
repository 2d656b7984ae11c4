"""The nodes of a frame's analyzed plan, as Spark's own objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def nodes(frame: DataFrame) -> Iterator[Any]:
    """Return the nodes of a frame's plan."""
    plans = [frame._jdf.queryExecution().analyzed()]
    while plans:
        node = plans.pop()
        yield node
        plans += in_list(node.children())


def in_list(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]
