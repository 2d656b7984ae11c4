"""What a parsed value must hold beside its types: NOT NULL at every depth, and years 1 to 9999.

Spark's from_json makes every field nullable, and takes a number for a TIMESTAMP as seconds, so that
milliseconds give the year 55840, which Python cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructField

    Check: TypeAlias = tuple[Callable[[Column], Column], str]


def checks(schema: DataType, path: str) -> list[Check]:
    """Return the checks of a parsed value, each with the words for its failure.

    A check is a function from the value's column to whether it fails. `path` names the value.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(schema, StructType):
        return [check for field in schema.fields for check in _of_field(field, path)]
    if isinstance(schema, ArrayType):
        return [
            (_any(fails), words)
            for fails, words in _of_element(schema.elementType, schema.containsNull, f"{path}[]")
        ]
    if isinstance(schema, MapType):
        return [
            (_any(fails, of_map=True), words)
            for fails, words in _of_element(
                schema.valueType, schema.valueContainsNull, f"{path}{{}}"
            )
        ]
    return _of_time(schema, path)


def _of_field(field: StructField, path: str) -> list[Check]:
    name, field_path = field.name, f"{path}.{field.name}"
    found = [] if field.nullable else [(_lacks(name), _lacking(path, name))]
    return found + [
        (_inside(name, fails), words) for fails, words in checks(field.dataType, field_path)
    ]


def _lacking(path: str, name: str) -> str:
    column, _, rest = f"{path}.{name}".partition(".")
    return f"{column} lacks the field {rest}, which is NOT NULL"


def _lacks(name: str) -> Callable[[Column], Column]:
    return lambda column: column.isNotNull() & column[name].isNull()


def _inside(name: str, fails: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda column: fails(column[name])


def _of_element(element: DataType, nullable: bool, path: str) -> list[Check]:
    found = checks(element, path)
    if nullable:
        return found
    return [(lambda column: column.isNull(), f"{path} is null, though NOT NULL"), *found]


def _any(fails: Callable[[Column], Column], *, of_map: bool = False) -> Callable[[Column], Column]:
    from pyspark.sql import functions as F  # noqa: N812

    return lambda column: F.exists(F.map_values(column) if of_map else column, fails)


def _of_time(schema: DataType, path: str) -> list[Check]:
    from pyspark.sql import functions as F  # noqa: N812

    kind = schema.simpleString()
    if kind not in ("timestamp", "timestamp_ntz", "date"):
        return []
    first, last = "0001-01-01", "9999-12-31"
    if kind == "timestamp":
        first, last = f"{first} 00:00:00Z", f"{last} 23:59:59.999999Z"
    elif kind == "timestamp_ntz":
        first, last = f"{first} 00:00:00", f"{last} 23:59:59.999999"
    low, high = F.lit(first).cast(schema), F.lit(last).cast(schema)
    words = f"{path} is outside of the years 1 to 9999"
    if kind == "timestamp":
        words += ": a number is seconds since 1970, not milliseconds"
    return [(lambda column: ~column.between(low, high), words)]
