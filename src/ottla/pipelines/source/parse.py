"""Parsing keys and values by a schema, as Spark columns.

A row that does not parse gets a reason, null where it parses. It never becomes a row of nulls.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.checks import checks, overflow_checks
from ottla.pipelines.source.mismatches import name_mismatch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

REASON: Final = "_ottla_reason"
GIVEN: Final = "_ottla_given_"  # with the column's name: whether the record has it at all
_PARSED: Final = "_ottla_parsed_"
_TRAILING: Final = "_ottla_trailing_"
_CORRUPT: Final = "_ottla_corrupt"
# No record can hold this name by design or by chance.
_END: Final = f"_ottla_{secrets.token_hex(8)}"


def read_schema(schema: Any, name: str) -> DataType:
    """Return the Spark type of a schema: a type, DDL, or None (a key's bytes, a value's text).

    DDL of fields (`"carrier STRING, delay DOUBLE"`) stands for a JSON object. Raises
    PipelineError, naming the parameter `name`.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType

    if schema is None:
        return BinaryType() if name == "key_schema" else StringType()
    if isinstance(schema, str):
        try:
            schema = DataType.fromDDL(schema)
        except PySparkException as error:
            raise PipelineError(
                f"{name}={schema!r} is no schema: write fields such as "
                f"'carrier STRING, delay DOUBLE', or one type such as 'string' or 'binary'"
            ) from error
    if not isinstance(schema, DataType):
        raise PipelineError(
            f"{name} must be a StructType or DDL, not {type(schema).__name__}: "
            "'carrier STRING, delay DOUBLE'"
        )
    if isinstance(schema, ArrayType | MapType):
        raise PipelineError(
            f"{name} must be an object's fields or one plain type, not {schema.simpleString()}: "
            "take the value as 'string' and parse it with pyspark.sql.functions.from_json"
        )
    return schema


def parse(raw: DataFrame, schemas: dict[str, DataType], *, name_fields: bool = False) -> DataFrame:
    """Add to Kafka's raw rows the parsed columns and the reason (null: it parsed).

    `schemas` gives the type of the columns `key` and `value`. `take_parsed` then chooses.
    `name_fields`: a value that does not fit is named in the reason. That takes further passes
    over the rejected rows, so the pass that only counts them leaves it out.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    reason: Column = F.lit(None).cast("string")
    # What is asked of the raw bytes is asked here, so that Spark does not carry them on.
    asked = {_PARSED + name: _parsed(F.col(name), schema) for name, schema in schemas.items()}
    given = {GIVEN + name: F.col(name).isNotNull() for name in schemas}
    trailing = {
        _TRAILING + name: _has_trailing(F.col(name))
        for name, schema in schemas.items()
        if is_object(schema)
    }
    frame = raw.withColumns(asked | given | trailing)
    for name, schema in reversed(schemas.items()):
        for wrong, words in reversed(_faults(name, schema, name_fields=name_fields)):
            reason = F.when(F.col(GIVEN + name) & wrong, words).otherwise(reason)
    return frame.withColumn(REASON, reason)


def take_parsed(frame: DataFrame, schemas: dict[str, DataType]) -> list[Column]:
    """Return the columns `key` and `value` as parsed; an object is null in a row with a reason."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = []
    for name, schema in schemas.items():
        column = F.col(_PARSED + name)
        columns.append((column.dropFields(_CORRUPT) if is_object(schema) else column).alias(name))
    return columns


def is_object(schema: DataType) -> bool:
    """Tell whether the type stands for a JSON object."""
    from pyspark.sql.types import StructType

    return isinstance(schema, StructType)


def never_fails(schema: DataType) -> bool:
    """Tell whether every bytes are a value of this type."""
    from pyspark.sql.types import BinaryType

    return isinstance(schema, BinaryType)


def _text(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.try_validate_utf8(column.cast("string"))


def _parsed(column: Column, schema: DataType) -> Column:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructField, StructType

    if never_fails(schema):
        return column
    if isinstance(schema, StringType):
        return _text(column)
    if not isinstance(schema, StructType):
        return _text(column).try_cast(schema)
    with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(_text(column), with_corrupt, options)


def _has_trailing(column: Column) -> Column:
    """Tell whether text follows the JSON object: from_json stops at the object's end.

    A single '}' in the last byte ends the object. For all other texts the object is read once
    more as the first of exactly two elements of an array: text that closes the array or adds
    elements to it changes their number.
    """
    from pyspark.sql import functions as F  # noqa: N812

    start = F.substring(column, F.lit(1), F.length(column) - 1)
    more = F.contains(start, F.lit(b"}")) | (F.substring(column, -1, 1) != F.lit(b"}"))
    array = F.concat(F.lit("["), column.cast("string"), F.lit(f',{{"{_END}":true}}]'))
    elements = F.from_json(array, f"array<struct<{_END}: boolean>>")
    whole = (F.size(elements) == 2) & elements[1][_END]
    # CASE, not AND: Spark evaluates what occurs twice in an AND's right side for every row.
    return F.when(more, ~F.coalesce(whole, F.lit(False))).otherwise(F.lit(False))


def _faults(name: str, schema: DataType, *, name_fields: bool) -> list[tuple[Column, Column]]:
    """Return what can be wrong with a key or value, each with the words for it."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructType

    if never_fails(schema):
        return []
    column = F.col(_PARSED + name)
    if isinstance(schema, StringType):
        return [(column.isNull(), F.lit(f"{name} is not UTF-8 text"))]
    found = [(fails(column), F.lit(words)) for fails, words in checks(schema, name)]
    if not isinstance(schema, StructType):
        return [(column.isNull(), F.lit(f"{name} is not a {schema.simpleString()}")), *found]
    words = F.lit(f"{name} is not a JSON object of the schema")
    if name_fields:
        words = F.coalesce(name_mismatch(column, _text(F.col(name)), schema, name), words)
    return [
        (column.isNull() | column[_CORRUPT].isNotNull(), words),
        (F.col(_TRAILING + name), F.lit(f"{name} has more text after its JSON object")),
        *found,
        *[
            (fails, F.lit(words))
            for fails, words in overflow_checks(column, F.col(name).cast("string"), schema, name)
        ],
    ]
