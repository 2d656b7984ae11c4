"""Parsing keys and values by a schema, as Spark columns.

A row that does not parse gets a reason, null where it parses. It never becomes a row of nulls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.source import debezium
from ottla.pipelines.source import framed_columns as framing
from ottla.pipelines.source.changed import changed_in_json, changed_in_text, written_in_json
from ottla.pipelines.source.checks import checks
from ottla.pipelines.source.closer_look import BROKEN, SAID, TEXT, TRAILING, closer_look
from ottla.pipelines.source.closer_look import HALF_PAIR as HAS_HALF_PAIR
from ottla.pipelines.source.debezium import SourceFormat
from ottla.pipelines.source.mismatches import name_mismatch
from ottla.pipelines.source.unknown import (
    COLUMN,
    as_json,
    own_names,
    unknown_names,
    unknown_of,
)
from ottla.pipelines.source.words import HALF_PAIR, UnknownFields
from ottla.pipelines.source.words import UNKNOWN as IS_UNKNOWN
from ottla.pipelines.spark.jvm.plain_object import plain_object
from ottla.pipelines.spark.jvm.required import is_connect
from ottla.registry.registered import JSON

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    Kind: TypeAlias = DataType | Framed

REASON: Final = "_ottla_reason"
GIVEN: Final = "_ottla_given_"  # with the column's name: whether the record has it at all
_PARSED: Final = "_ottla_parsed_"
PARSED_KEY: Final = f"{_PARSED}key"
"""The column of the parsed key in the plan of a topic's rows."""
_FAILED: Final = "_ottla_failed_"
_FRAMING: Final = "_ottla_framing_"
_LOOK: Final = "_ottla_look_"
_CHANGED: Final = "_ottla_changed_"
UNKNOWN: Final = "_ottla_unknown"
"""The column of the names of a value's fields that its schema lacks, null without any."""
_KEPT: Final = "_ottla_kept"
_READ: Final = "_ottla_read_"
_RAW: Final = "_ottla_raw_"
_THERE: Final = "_ottla_there_"
_CORRUPT: Final = "_ottla_corrupt"


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


def parse(
    raw: DataFrame,
    schemas: dict[str, Kind],
    *,
    name_fields: bool = False,
    unknown_fields: UnknownFields = "drop",
    source_format: SourceFormat = "plain",
) -> DataFrame:
    """Add to Kafka's raw rows the parsed columns and the reason (null: it parsed).

    `schemas` gives the type of the columns `key` and `value`, or how it is framed by a schema
    registry. `take_parsed` then chooses.
    `name_fields`: a value that does not fit is named in the reason. That takes further passes
    over the rejected rows, so the pass that only counts them leaves it out.
    `unknown_fields`: those of a value that is a JSON object; UNKNOWN has their names.
    `source_format`: "debezium" for a value that is an event of Debezium.
    """
    read = _read_at_once(raw, schemas) if source_format == "plain" else {}
    left = _without_read(raw, read)
    frame = _parse_left(left, schemas, name_fields, unknown_fields, source_format)
    return _with_read(frame, schemas, read)


def _read_at_once(raw: DataFrame, schemas: dict[str, Kind]) -> dict[str, Column]:
    """Return the columns of the objects that need neither from_json nor a closer look.

    Such a column is null where they do. Only a session with a JVM has them.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
    from pyspark.sql.types import StructType

    spark = raw.sparkSession
    if is_connect(spark):
        return {}
    found = {
        name: plain_object(spark, F.col(name), schema)
        for name, schema in schemas.items()
        if isinstance(schema, StructType)
    }
    return {name: column for name, column in found.items() if column is not None}


def _without_read(raw: DataFrame, read: dict[str, Column]) -> DataFrame:
    """Return the rows with null instead of the bytes that are read at once, which are kept."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = {_READ + name: column for name, column in read.items()}
    columns |= {_RAW + name: F.col(name) for name in read}
    # Asked here, so that Spark carries the bytes on only for those who want them.
    columns |= {_THERE + name: F.col(name).isNotNull() for name in read}
    left = {name: F.when(F.col(_READ + name).isNull(), F.col(name)) for name in read}
    return raw.withColumns(columns).withColumns(left) if read else raw


def _with_read(frame: DataFrame, schemas: dict[str, Kind], read: Iterable[str]) -> DataFrame:
    """Return the rows of `_parse_left` with the values that were read at once, and all bytes."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = {
        _PARSED + name: F.col(_PARSED + name).dropFields(_CORRUPT)
        for name, schema in schemas.items()
        if as_json_object(schema) is not None
    }
    for name in read:
        columns[_PARSED + name] = F.coalesce(F.col(_READ + name), columns[_PARSED + name])
        columns |= {name: F.col(_RAW + name), GIVEN + name: F.col(_THERE + name)}
    # Spark Connect takes no empty dict.
    return frame.withColumns(columns) if columns else frame


def _parse_left(
    raw: DataFrame,
    schemas: dict[str, Kind],
    name_fields: bool,
    unknown_fields: UnknownFields,
    source_format: SourceFormat,
) -> DataFrame:
    """Add the columns of `parse`; a parsed object still has the field of the corrupt record."""
    from pyspark.sql import functions as F  # noqa: N812

    reason: Column = F.lit(None).cast("string")
    objects = {
        name: fields
        for name, schema in schemas.items()
        if (fields := as_json_object(schema)) is not None
    }
    # What is asked of the raw bytes is asked here, so that Spark does not carry them on.
    asked = {_PARSED + name: _parsed(name, schema) for name, schema in schemas.items()}
    for name in objects:
        # In the projection of the parse, whose equal parts Spark computes once.
        column = asked[_PARSED + name]
        asked[_FAILED + name] = column.isNull() | column[_CORRUPT].isNotNull()
    given = {GIVEN + name: F.col(name).isNotNull() for name in schemas}
    # All of a closer look at once: each step that Spark cannot compile costs a copy of the row.
    looks = {
        _LOOK + name: closer_look(_data(name, schemas[name]), fields, names_unknown=name == "value")
        for name, fields in objects.items()
    }
    framed = {
        _FRAMING + name: framing.framing_fault(F.col(name), schema, name)
        for name, schema in schemas.items()
        if isinstance(schema, Framed)
    }
    frame = raw.withColumns(asked | given | looks | framed)
    frame, changed = _with_changed(frame, objects)
    if "value" in objects:
        frame = _with_unknown(frame, objects["value"], unknown_fields)
    for name, schema in reversed(schemas.items()):
        faults = _faults(name, schema, name_fields=name_fields)
        if name in changed:
            fault = F.col(_CHANGED + name)
            faults.append((fault.isNotNull(), fault))
        if name == "value" and source_format == debezium.DEBEZIUM:
            parsed = F.col(_PARSED + name)
            if isinstance(schema, Framed):
                parsed = framing.value_in(parsed, schema)
            faults += debezium.faults(parsed, object_of(schema))
        if name == "value" and name in objects and unknown_fields == "reject":
            words = F.concat(F.lit(f"value {IS_UNKNOWN}: "), F.col(UNKNOWN))
            faults.append((F.col(UNKNOWN).isNotNull(), words))
        for wrong, words in reversed(faults):
            reason = F.when(F.col(GIVEN + name) & wrong, words).otherwise(reason)
    return frame.withColumn(REASON, reason)


def _with_changed(frame: DataFrame, objects: dict[str, StructType]) -> tuple[DataFrame, list[str]]:
    """Add the columns of what is wrong with values that the parser changed.

    Returns with the frame the names of the objects that have such a column.
    """
    from pyspark.sql import functions as F  # noqa: N812

    faults = {}
    for name, fields in objects.items():
        text, parsed = F.col(_LOOK + name)[TEXT], F.col(_PARSED + name)
        if written_in_json(text, fields) is not None:
            said = F.col(_LOOK + name)[SAID]
            fault = changed_in_json(parsed, said, text, fields, name)
            faults[_CHANGED + name] = F.when(said.isNotNull(), fault)
    # Spark Connect takes no empty dict.
    frame = frame.withColumns(faults) if faults else frame
    return frame, [name for name in objects if _CHANGED + name in faults]


def _with_unknown(frame: DataFrame, fields: StructType, unknown_fields: UnknownFields) -> DataFrame:
    """Add the column of the names of a value's unknown fields, and that of what is kept of them."""
    from pyspark.sql import functions as F  # noqa: N812

    look = F.col(f"{_LOOK}value")
    text = look[TEXT]
    own = own_names(look, fields)
    frame = frame.withColumns(own) if own else frame
    names = unknown_names(look, text, fields)
    frame = frame.withColumn(UNKNOWN, F.when(look.isNotNull(), names))
    if unknown_fields != "keep":
        return frame
    kept = as_json(unknown_of(text, fields))
    return frame.withColumn(_KEPT, F.when(F.col(UNKNOWN).isNotNull(), kept))


def take_parsed(schemas: dict[str, Kind], *, keeps_unknown: bool = False) -> list[Column]:
    """Return the columns `key` and `value` as parsed; an object is null in a row with a reason.

    `keeps_unknown`: the fields of the value that its schema lacks are in one more field of it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = []
    for name, schema in schemas.items():
        column = F.col(_PARSED + name)
        if as_json_object(schema) is not None:
            if name == "value" and keeps_unknown:
                column = column.withField(COLUMN, F.col(_KEPT))
        elif isinstance(schema, Framed):
            column = framing.value_in(column, schema)
        columns.append(column.alias(name))
    return columns


def is_object(schema: Kind) -> bool:
    """Tell whether the type stands for an object with fields."""
    from pyspark.sql.types import StructType

    return schema.is_object if isinstance(schema, Framed) else isinstance(schema, StructType)


def object_of(schema: Kind) -> StructType:
    """Return the type of a value that is an object."""
    from pyspark.sql.types import StructType

    found = framing.type_of(schema) if isinstance(schema, Framed) else schema
    assert isinstance(found, StructType), "the caller has asked is_object"
    return found


def never_fails(schema: Kind) -> bool:
    """Tell whether every bytes are a value of this type."""
    from pyspark.sql.types import BinaryType

    return isinstance(schema, BinaryType)


def as_json_object(schema: Kind) -> StructType | None:
    """Return the fields of data that is a JSON object, None for other data."""
    from pyspark.sql.types import StructType

    if isinstance(schema, Framed):
        if schema.format != JSON:
            return None
        schema = framing.type_of(schema)
    return schema if isinstance(schema, StructType) else None


def _data(name: str, schema: Kind) -> Column:
    """Return the bytes of a key or value without its framing."""
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(name)
    return framing.payload(column) if isinstance(schema, Framed) else column


def _text(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.try_validate_utf8(column.cast("string"))


def _parsed(name: str, schema: Kind) -> Column:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructType

    column = F.col(name)
    if isinstance(schema, Framed):
        return framing.decode(column, schema, name, _from_json)
    if never_fails(schema):
        return column
    if isinstance(schema, StringType):
        return _text(column)
    if not isinstance(schema, StructType):
        return _text(column).try_cast(schema)
    return _from_json(column, schema)


def _from_json(column: Column, schema: DataType) -> Column:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructField, StructType

    assert isinstance(schema, StructType), "only objects have a corrupt record"
    with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    # Whether the text is UTF-8 is part of the closer look: here Spark would not compile that.
    return F.from_json(column.cast("string"), with_corrupt, options)


def _faults(name: str, schema: Kind, *, name_fields: bool) -> list[tuple[Column, Column]]:
    """Return what can be wrong with a key or value, each with the words for it."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType

    if never_fails(schema):
        return []
    column = F.col(_PARSED + name)
    fields = as_json_object(schema)
    if isinstance(schema, Framed):
        framing_fault = [(F.col(_FRAMING + name).isNotNull(), F.col(_FRAMING + name))]
        if fields is None:
            return framing_fault + framing.binary_faults(column, schema, name)
        return framing_fault + _object_faults(name, schema, fields, name_fields=name_fields)
    if fields is not None:
        found = _object_faults(name, schema, fields, name_fields=name_fields)
    elif isinstance(schema, StringType):
        found = [(column.isNull(), F.lit(f"{name} is not UTF-8 text"))]
    else:
        found = [
            (column.isNull(), F.lit(f"{name} is not a {schema.simpleString()}")),
            *[(fails(column), F.lit(words)) for fails, words in checks(schema, name)],
            *[
                (wrong, F.lit(words))
                for wrong, words in changed_in_text(column, _text(F.col(name)), schema, name)
            ],
        ]
    if name_fields:
        wrong, words = found[0]
        found[0] = (wrong, _or_framed(name, words))
    return found


def _or_framed(name: str, words: Column) -> Column:
    """Name the framing of a schema registry, which is why data does not parse without one."""
    from pyspark.sql import functions as F  # noqa: N812

    argument = "key_schema" if name == "key" else "schema"
    framed = F.concat(
        F.lit(f"{name} begins with the framing of a schema registry (schema id "),
        framing.id_in(F.col(name)),
        F.lit(f"): read it with topic(..., registry='http://...', {argument}='registry')"),
    )
    return F.when(framing.looks_framed(F.col(name)), framed).otherwise(words)


def _object_faults(
    name: str, schema: Kind, fields: StructType, *, name_fields: bool
) -> list[tuple[Column, Column]]:
    """Return what can be wrong with the text of a JSON object, each with the words for it."""
    from pyspark.sql import functions as F  # noqa: N812

    column, data = F.col(_PARSED + name), _data(name, schema)
    look = F.col(_LOOK + name)
    words = F.lit(f"{name} is not a JSON object of the schema")
    if name_fields:
        words = F.coalesce(name_mismatch(column, _text(data), fields, name), words)
    return [
        (F.col(_FAILED + name) | look[BROKEN], words),
        (look[TRAILING], F.lit(f"{name} has more text after its JSON object")),
        (look[HAS_HALF_PAIR], F.lit(f"{name} {HALF_PAIR}")),
        *[(fails(column), F.lit(words)) for fails, words in checks(fields, name)],
    ]
