"""Whether a parsed JSON object may have values that the parser changed: a quick look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.forms import HIDING, hiding, unusual

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    Ask: TypeAlias = Callable[[Column], Column]


def doubtful(parsed: Column, text: Column, schema: StructType) -> Column | None:
    """Return whether `changed` has to look at the values; None: no type is one that is changed."""

    doubts = unusual_numbers(parsed, schema)
    kind = kind_of(schema)
    expressions = unusual(kind)
    if expressions is not None:
        may_hide = reduce(lambda one, other: one | other, [text.contains(one) for one in HIDING])
        doubts += [text.rlike(one) for one in expressions]
        doubts.append(may_hide & text.rlike(hiding(kind)))
    return reduce(lambda one, other: one | other, doubts) if doubts else None


def unusual_numbers(parsed: Column, schema: StructType) -> list[Column]:
    """Return whether each number in the parsed object may be changed, as far as itself tells."""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.coalesce(doubt(parsed), F.lit(False)) for doubt in _of(schema)]


def _of(kind: DataType) -> Iterator[Ask]:
    """Return what is asked of the numbers in a value, at every depth."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            for ask in _of(field.dataType):
                yield _in_field(field.name, ask)
    elif isinstance(kind, MapType):
        for ask in _of(kind.valueType):
            yield _of_any(ask, F.map_values)
    elif isinstance(kind, ArrayType):
        element = kind.elementType
        if element.simpleString() in ("float", "double"):
            # Quicker than a lambda.
            yield _contains(F.lit(float("inf")).cast(element))
            yield _contains(F.lit(float("-inf")).cast(element))
        elif element.simpleString() == "tinyint":
            yield lambda column: F.array_min(column) < 0
        else:
            for ask in _of(element):
                yield _of_any(ask, lambda column: column)
    elif kind.simpleString() in ("float", "double"):
        yield lambda column: F.abs(column) == F.lit(float("inf"))
    elif kind.simpleString() == "tinyint":
        yield lambda column: column < 0


def _in_field(name: str, ask: Ask) -> Ask:
    return lambda column: ask(column[name])


def _contains(element: Column) -> Ask:
    from pyspark.sql import functions as F  # noqa: N812

    return lambda column: F.array_contains(column, element)


def _of_any(ask: Ask, values: Ask) -> Ask:
    from pyspark.sql import functions as F  # noqa: N812

    return lambda column: F.exists(values(column), ask)
