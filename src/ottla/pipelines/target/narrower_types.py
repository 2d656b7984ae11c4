"""Columns that a table lacks, and those that cannot hold each value of the rows for them. Pure.

MERGE casts a row to the table's types, and Spark allows casts that change values: 1.75 becomes 1, a
TIMESTAMP a DATE, DECIMAL(10,4) loses two digits, and three keys become one. An append refuses such
rows by itself, with its first batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

WHOLE_DIGITS: Final = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""Whole numbers and how many decimal digits they may have, the smaller types first."""
_EXACT_IN: Final = {
    "float": ("byte", "short"),
    "double": ("byte", "short", "integer", "float"),
    "timestamp": ("date",),
    "timestamp_ntz": ("date",),
}
"""What these types hold without loss: floating-point numbers have 24 and 53 bits."""
_NO_TEXT: Final = ("binary", "struct", "array", "map", "variant")
"""What a text does not hold: bytes may be none, and the others have several forms."""


def narrower(
    rows: StructType, table: StructType, path: str = ""
) -> Iterator[tuple[str, DataType, DataType]]:
    """Return the columns whose values a table may change: (full name, type, type in the table).

    Names are compared without regard to case, as Spark does. Columns that the table does not have
    are left out.
    """
    known = {column.name.lower(): column.dataType for column in table.fields}
    for column in rows.fields:
        if column.name.lower() in known:
            yield from _narrower(column.dataType, known[column.name.lower()], path + column.name)


def _narrower(
    rows: DataType, table: DataType, name: str
) -> Iterator[tuple[str, DataType, DataType]]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(rows, StructType) and isinstance(table, StructType):
        yield from narrower(rows, table, f"{name}.")
    elif isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        yield from _narrower(rows.elementType, table.elementType, f"{name}.element")
    elif isinstance(rows, MapType) and isinstance(table, MapType):
        yield from _narrower(rows.keyType, table.keyType, f"{name}.key")
        yield from _narrower(rows.valueType, table.valueType, f"{name}.value")
    elif not holds(rows, table):
        yield name, rows, table


def holds(rows: DataType, table: DataType) -> bool:
    """Tell whether a type has each value of another one, unchanged but for its form."""
    from pyspark.sql.types import DecimalType

    has, wanted = table.typeName(), rows.typeName()
    if wanted == "void":
        return True
    if isinstance(table, DecimalType):
        whole: int = table.precision - table.scale
        if isinstance(rows, DecimalType):
            return bool(whole >= rows.precision - rows.scale and table.scale >= rows.scale)
        return wanted in WHOLE_DIGITS and whole >= WHOLE_DIGITS[wanted]
    if has in WHOLE_DIGITS and wanted in WHOLE_DIGITS:
        return WHOLE_DIGITS[has] >= WHOLE_DIGITS[wanted]
    if _is_text(has):
        # A text of any length fits, or is refused by the table: see `constraints`.
        return wanted not in _NO_TEXT
    return wanted == has or wanted in _EXACT_IN.get(has, ())


def exact_casts(rows: StructType, table: StructType) -> dict[str, DataType]:
    """Return the columns that hold each value, and that Spark's strict casts refuse, with types.

    A BIGINT has 19 digits, for which Spark asks 20 of a DECIMAL.
    """
    from pyspark.sql.types import DecimalType, LongType

    known = {column.name.lower(): column.dataType for column in table.fields}
    found = {one.name: known.get(one.name.lower()) for one in rows.fields}
    of_long = {one.name for one in rows.fields if isinstance(one.dataType, LongType)}
    return {
        name: kind
        for name, kind in found.items()
        if name in of_long and isinstance(kind, DecimalType) and holds(LongType(), kind)
    }


def _is_text(name: str) -> bool:
    return name.startswith(("string", "char", "varchar"))


def added_columns(frame: StructType, table: StructType, path: str = "") -> list[tuple[str, str]]:
    """Return the columns of a frame that a table does not have: (full name, type).

    Names are compared without regard to case, as Spark does.
    """
    known = {column.name.lower(): column.dataType for column in table.fields}
    found: list[tuple[str, str]] = []
    for column in frame.fields:
        name = path + column.name
        if column.name.lower() not in known:
            found.append((name, column.dataType.simpleString()))
        else:
            found += _added_inside(column.dataType, known[column.name.lower()], name)
    return found


def _added_inside(frame: DataType, table: DataType, name: str) -> list[tuple[str, str]]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(frame, StructType) and isinstance(table, StructType):
        return added_columns(frame, table, f"{name}.")
    if isinstance(frame, ArrayType) and isinstance(table, ArrayType):
        return _added_inside(frame.elementType, table.elementType, f"{name}.element")
    if isinstance(frame, MapType) and isinstance(table, MapType):
        return _added_inside(frame.valueType, table.valueType, f"{name}.value")
    return []
