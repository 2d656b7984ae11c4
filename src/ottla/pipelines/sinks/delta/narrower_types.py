"""Columns of a table that cannot hold each value of the rows for it. Pure.

MERGE casts a row to the table's types, and Spark allows casts that change values: 1.75 becomes 1, a
TIMESTAMP a DATE, DECIMAL(10,4) loses two digits, and three keys become one. An append refuses such
rows by itself, with its first batch.

Delta gives some columns the wider type of the rows, where new columns are added: INT becomes BIGINT
(its table feature type widening).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WHOLE_DIGITS: Final = {"byte": 3, "short": 5, "integer": 10, "long": 19}
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

    Names are compared without regard to case, as Delta does. Columns that the table does not have
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
    elif not _holds(rows, table):
        yield name, rows, table


def _holds(rows: DataType, table: DataType) -> bool:
    """Tell whether a type has each value of another one, unchanged but for its form."""
    from pyspark.sql.types import DecimalType

    has, wanted = table.typeName(), rows.typeName()
    if wanted == "void":
        return True
    if isinstance(table, DecimalType):
        whole: int = table.precision - table.scale
        if isinstance(rows, DecimalType):
            return bool(whole >= rows.precision - rows.scale and table.scale >= rows.scale)
        return wanted in _WHOLE_DIGITS and whole >= _WHOLE_DIGITS[wanted]
    if has in _WHOLE_DIGITS and wanted in _WHOLE_DIGITS:
        return _WHOLE_DIGITS[has] >= _WHOLE_DIGITS[wanted]
    if _is_text(has):
        # A text of any length fits, or is refused by the table: see `constraints`.
        return wanted not in _NO_TEXT
    return wanted == has or wanted in _EXACT_IN.get(has, ())


def can_widen(table: DataType, rows: DataType, *, has_feature: bool) -> bool:
    """Tell whether Delta gives a column of a table the type of the rows, which is wider.

    `has_feature`: the table has type widening. Parquet stores BYTE, SHORT and INT as one type, so
    these need no feature. (TypeWidening.isTypeChangeSupportedForSchemaEvolution of Delta.)
    """
    from pyspark.sql.types import DecimalType

    has, wanted = table.typeName(), rows.typeName()
    if isinstance(table, DecimalType):
        return has_feature and isinstance(rows, DecimalType) and _holds(table, rows)
    if has in _WHOLE_DIGITS and wanted in _WHOLE_DIGITS:
        return _holds(table, rows) and (has_feature or wanted != "long")
    return has_feature and (has, wanted) == ("float", "double")


def _is_text(name: str) -> bool:
    return name.startswith(("string", "char", "varchar"))
