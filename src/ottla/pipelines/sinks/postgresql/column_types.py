"""Spark's types and PostgreSQL's: which column a new table gets, which one a value fits. Pure.

Values travel as the text of `COPY` in its format csv: commas between columns, nothing for null, and
texts in quotes. The quote is a character that texts hardly ever have: only that one is doubled, so
each text is searched once. Here is the expression that gives that text for each type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.json_texts import WHOLE_TIMES
from ottla.pipelines.target.constraints import Constraint

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

QUOTE: Final = "\x01"

_ZERO: Final = "\0"
_SHOWN_ZERO: Final = r"\u0000"
"""U+0000 as JSON has it, which PostgreSQL stores in no text and in no JSON."""
_ZERO_IN_JSON: Final = r"(?<!\\)((?:\\\\)*)\\u0000"
"""Not a backslash, which is two of them in JSON, before the text u0000."""

_NEW: Final = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_NESTED: Final = ("struct", "array", "map")
_INTEGERS: Final = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
_TEXTS: Final = ("text", "character varying", "character", "citext")
_FITTING: Final = {
    "boolean": ("boolean",),
    "tinyint": _INTEGERS,
    "smallint": _INTEGERS,
    "int": ("integer", "bigint", "numeric", "double precision"),
    "bigint": ("bigint", "numeric"),
    "float": ("real", "double precision"),
    "double": ("double precision",),
    "decimal": ("numeric",),
    "string": (*_TEXTS, "uuid", "json", "jsonb", "xml", "inet", "cidr", "macaddr", "interval"),
    "binary": ("bytea",),
    "date": ("date",),
    "timestamp": ("timestamp with time zone",),
    "timestamp_ntz": ("timestamp without time zone",),
    **dict.fromkeys(_NESTED, ("jsonb", "json", "text")),
}
_MICROSECOND_DIGITS: Final = 6
_SCALE: Final = re.compile(r"numeric\(\d+,(-?\d+)\)")
_WHOLE_INTERVALS: Final = ("interval", "interval(6)")
_SECOND_DIGITS: Final = re.compile(r"timestamp\((\d)\)")


def new_type(kind: DataType) -> str | None:
    """Return the type of a new column for Spark's type, None for one that PostgreSQL lacks."""
    name = kind.typeName()
    if name == "decimal":
        return str(kind.simpleString()).replace("decimal", "numeric")
    if name in _NESTED:
        return "jsonb" if _is_json(kind) else None
    return _NEW.get(kind.simpleString())


def fits(kind: DataType, column: str, *, is_enum: bool = False) -> bool:
    """Tell whether values of Spark's type fit a column of PostgreSQL's type.

    `column` is the type without its length, such as `character varying`. An integer fits a wider
    one. Text fits types that PostgreSQL reads from text; a value that is not of the type fails.
    The type `name` would cut a text to 63 bytes, and `real` an INT to 24 bits, both in silence.
    """
    if new_type(kind) is None:
        return False
    name = kind.typeName() if kind.typeName() in ("decimal", *_NESTED) else kind.simpleString()
    return column in _FITTING[name] or (is_enum and name == "string")


def is_rounded(kind: DataType, whole: str) -> bool:
    """Tell whether a column rounds values of Spark's type: it has fewer digits after the point, or
    is an interval of fewer fields.

    `whole` is its type with its digits, such as `numeric(10,2)` or `interval day`.
    """
    from pyspark.sql.types import DecimalType

    if whole.startswith("interval"):
        return whole not in _WHOLE_INTERVALS
    found = _SCALE.fullmatch(whole)
    return found is not None and int(found[1]) < (
        kind.scale if isinstance(kind, DecimalType) else 0
    )


def rounding_constraint(name: str, kind: DataType, whole: str) -> Constraint | None:
    """Return what a time must fulfil that a `timestamp(n)` does not round, None for other types."""
    found = _SECOND_DIGITS.match(whole)
    if found is None or kind.typeName() not in ("timestamp", "timestamp_ntz"):
        return None
    column, step = quoted(name), 10 ** (_MICROSECOND_DIGITS - int(found[1]))
    if step == 1:
        return None
    return Constraint(
        f"{column} IS NULL OR CAST(date_format({column}, 'SSSSSS') AS INT) % {step} = 0",
        f"the column {name} has parts of a second that the table's {whole} would round",
    )


def copy_line(columns: Mapping[str, DataType], *, shows_zeros: bool = False) -> Column:
    """Return the line of COPY for a row with these columns.

    `shows_zeros`: U+0000 becomes the text \\u0000, for rows that nothing may refuse.
    """
    from pyspark.sql import functions as F  # noqa: N812

    texts = (_copy_text(name, kind, shows_zeros=shows_zeros) for name, kind in columns.items())
    return F.concat(F.concat_ws(",", *texts), F.lit("\n"))


def _copy_text(name: str, kind: DataType, *, shows_zeros: bool) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(quoted(name))
    if kind.typeName() in _NESTED:
        # JSON has its own escape for the quote.
        json = F.to_json(column, WHOLE_TIMES)
        if shows_zeros:
            json = F.regexp_replace(json, _ZERO_IN_JSON, r"$1\\\\u0000")
        text = F.concat(F.lit(QUOTE), json, F.lit(QUOTE))
    elif kind.typeName() == "string":
        if shows_zeros:
            column = F.replace(column, F.lit(_ZERO), F.lit(_SHOWN_ZERO))
        # Few texts need it, and contains() is the cheaper of the two.
        doubled = F.replace(column, F.lit(QUOTE), F.lit(QUOTE * 2))
        inside = F.when(F.contains(column, F.lit(QUOTE)), doubled).otherwise(column)
        text = F.concat(F.lit(QUOTE), inside, F.lit(QUOTE))
    elif kind.typeName() == "binary":
        text = F.concat(F.lit("\\x"), F.hex(column))
    elif kind.typeName() == "timestamp":
        # With the offset of the session's zone: without it a repeated hour would be two moments.
        text = F.date_format(column, "yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX")
    else:
        text = column.cast("string")
    return F.coalesce(text, F.lit(""))


def value_constraints(name: str, kind: DataType, *, of_texts: bool) -> list[Constraint]:
    """Return what a value must fulfil that Spark's type allows and PostgreSQL's does not.

    `of_texts`: of texts, too.
    """
    column = quoted(name)
    if kind.typeName() in ("date", "timestamp", "timestamp_ntz"):
        return [
            Constraint(
                f"{column} IS NULL OR year({column}) BETWEEN 1 AND 9999",
                f"the column {name} is outside of the years 1 to 9999",
            )
        ]
    reason = f"the column {name} has the character U+0000, which PostgreSQL cannot store"
    if kind.typeName() == "string" and of_texts:
        return [Constraint(f"{column} IS NULL OR NOT contains({column}, chr(0))", reason)]
    if kind.typeName() in _NESTED:
        json = f"to_json({column})"
        found = f"contains({json}, r'{_SHOWN_ZERO}') AND rlike({json}, r'{_ZERO_IN_JSON}')"
        return [Constraint(f"{column} IS NULL OR NOT ({found})", reason)]
    return []


def padding_constraint(name: str) -> Constraint:
    """Return what a text must fulfil as a key in a `character(n)`, whose spaces do not count."""
    column = quoted(name)
    return Constraint(
        f"{column} IS NULL OR NOT endswith({column}, ' ')",
        f"the key column {name} ends with a space, which does not count in a character(n)",
    )


def length_constraint(name: str, kind: DataType, most: int) -> Constraint | None:
    """Return the limit of a `varchar(n)` for a text, None for other types."""
    if kind.typeName() != "string":
        return None
    column = quoted(name)
    return Constraint(
        f"{column} IS NULL OR length({column}) <= {most}",
        f"the column {name} is longer than the {most} characters that the table allows",
    )


def _is_json(kind: DataType) -> bool:
    """Tell whether Spark's to_json takes all of a nested type."""
    text = kind.simpleString()
    return not any(word in text for word in ("variant", "interval", "void"))
