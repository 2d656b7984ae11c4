"""Parsing keys and values by a schema, as Spark columns.

A field that does not parse is never turned into a silent null: each row gets a reason, null
when all is well, and a row with a reason is kept apart with its raw bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

REASON: Final = "_ottla_reason"
_PARSED: Final = "_ottla_parsed_"
_GIVEN: Final = "_ottla_given_"
_CORRUPT: Final = "_ottla_corrupt"


def read_schema(schema: Any, name: str) -> DataType:
    """Return the Spark type of a schema: a type, DDL, or None for text.

    DDL of fields (`"carrier STRING, delay DOUBLE"`) stands for a JSON object. Raises
    PipelineError, naming the parameter `name`.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import ArrayType, DataType, MapType, StringType

    if schema is None:
        return StringType()
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


def parse(raw: DataFrame, schemas: dict[str, DataType]) -> DataFrame:
    """Add to Kafka's raw rows the parsed columns and the reason (null: it parsed).

    `schemas` gives the type of the columns `key` and `value`. `take_parsed` then chooses.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    reason: Column = F.lit(None).cast("string")
    # What is asked of the raw bytes is asked here, so that Spark does not carry them on.
    asked = {_PARSED + name: _parsed(F.col(name), schema) for name, schema in schemas.items()}
    given = {_GIVEN + name: F.col(name).isNotNull() for name in schemas}
    frame = raw.withColumns(asked | given)
    for name, schema in reversed(schemas.items()):
        for wrong, words in reversed(_faults(name, schema)):
            reason = F.when(F.col(_GIVEN + name) & wrong, F.lit(words)).otherwise(reason)
    return frame.withColumn(REASON, reason)


def take_parsed(frame: DataFrame, schemas: dict[str, DataType]) -> list[Column]:
    """Return the columns `key` and `value` as parsed, once the rows with a reason are gone."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = []
    for name, schema in schemas.items():
        column = F.col(_PARSED + name)
        columns.append((column.dropFields(_CORRUPT) if _is_object(schema) else column).alias(name))
    return columns


def _is_object(schema: DataType) -> bool:
    from pyspark.sql.types import StructType

    return isinstance(schema, StructType)


def never_fails(schema: DataType) -> bool:
    """Tell whether every bytes are a value of this type."""
    from pyspark.sql.types import BinaryType

    return isinstance(schema, BinaryType)


def _parsed(column: Column, schema: DataType) -> Column:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructField, StructType

    if never_fails(schema):
        return column
    text = F.try_validate_utf8(column.cast("string"))
    if isinstance(schema, StringType):
        return text
    if not isinstance(schema, StructType):
        return text.try_cast(schema)
    with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(text, with_corrupt, options)


def _faults(name: str, schema: DataType) -> list[tuple[Column, str]]:
    """Return what can be wrong with a key or value, each with the words for it."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructType

    if never_fails(schema):
        return []
    column = F.col(_PARSED + name)
    if isinstance(schema, StringType):
        return [(column.isNull(), f"{name} is not UTF-8 text")]
    if not isinstance(schema, StructType):
        return [(column.isNull(), f"{name} is not a {schema.simpleString()}")]
    not_json = column.isNull() | column[_CORRUPT].isNotNull()
    faults = [(not_json, f"{name} is not a JSON object of the schema")]
    for field in schema.fields:
        if not field.nullable:
            lacks = f"{name} lacks the field {field.name}, which is NOT NULL"
            faults.append((column[field.name].isNull(), lacks))
    return faults
