"""Parsing keys and values by a schema, as Spark columns.

A row that does not parse gets a reason, null where it parses. It never becomes a row of nulls.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.source import debezium
from ottla.pipelines.source import framed_columns as framing
from ottla.pipelines.source.changed import changed_in_json, changed_in_text, written_in_json
from ottla.pipelines.source.checks import checks
from ottla.pipelines.source.debezium import SourceFormat
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.mismatches import name_mismatch
from ottla.pipelines.source.plain import plain
from ottla.pipelines.source.quick import is_quick
from ottla.pipelines.source.surrogates import has_half_pair, has_texts
from ottla.pipelines.source.unknown import (
    COLUMN,
    as_json,
    looked_for,
    own_names,
    unknown_names,
    unknown_of,
)
from ottla.pipelines.source.words import HALF_PAIR, UnknownFields
from ottla.pipelines.source.words import UNKNOWN as IS_UNKNOWN
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
# What a closer look at an object has; it is null where that is not needed.
_BROKEN: Final = "broken"
_TRAILING: Final = "trailing"
_HALF_PAIR: Final = "half_pair"
_SAID: Final = "said"
_TEXT: Final = "text"
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
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    reason: Column = F.lit(None).cast("string")
    objects = {
        name: fields
        for name, schema in schemas.items()
        if (fields := as_json_object(schema)) is not None
    }
    # What is asked of the raw bytes is asked here, so that Spark does not carry them on.
    asked = {_PARSED + name: _parsed(name, schema) for name, schema in schemas.items()}
    for name in objects:
        # In the projection of the parse, which Spark computes once: a later one would read each
        # field of the object again.
        column = asked[_PARSED + name]
        asked[_PARSED + name] = column.dropFields(_CORRUPT)
        asked[_FAILED + name] = column.isNull() | column[_CORRUPT].isNotNull()
    given = {GIVEN + name: F.col(name).isNotNull() for name in schemas}
    # All of a closer look at once: each step that Spark cannot compile costs a copy of the row.
    looks = {_LOOK + name: _look(name, schemas[name], fields) for name, fields in objects.items()}
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
        text, parsed = F.col(_LOOK + name)[_TEXT], F.col(_PARSED + name)
        if written_in_json(text, fields) is not None:
            said = F.col(_LOOK + name)[_SAID]
            fault = changed_in_json(parsed, said, text, fields, name)
            faults[_CHANGED + name] = F.when(said.isNotNull(), fault)
    # Spark Connect takes no empty dict.
    frame = frame.withColumns(faults) if faults else frame
    return frame, [name for name in objects if _CHANGED + name in faults]


def _with_unknown(frame: DataFrame, fields: StructType, unknown_fields: UnknownFields) -> DataFrame:
    """Add the column of the names of a value's unknown fields, and that of what is kept of them."""
    from pyspark.sql import functions as F  # noqa: N812

    look = F.col(f"{_LOOK}value")
    text = look[_TEXT]
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


def _look(name: str, schema: Kind, fields: StructType) -> Column:
    """Return a closer look at a JSON object, null for a plain text, which needs none."""
    from pyspark.sql import functions as F  # noqa: N812

    data = _data(name, schema)
    text = data.cast("string")
    kind = kind_of(fields)
    # The text itself: without it here Spark would carry the data of all records on.
    found = {
        _TEXT: text,
        _BROKEN: ~F.is_valid_utf8(text),
        _TRAILING: _has_trailing(data),
        _HALF_PAIR: has_half_pair(text) if has_texts(kind) else F.lit(False),
    }
    said = written_in_json(text, fields)
    if said is not None:
        found[_SAID] = said
    if name == "value":
        found |= looked_for(text, fields)
    whole = F.struct(*[column.alias(part) for part, column in found.items()])
    expression = plain(kind)
    if expression is None:
        return whole
    is_plain = F.is_valid_utf8(text) & text.rlike(expression)
    if not isinstance(schema, Framed):
        quick = is_quick(_parsed(name, schema), text, fields)
        if quick is not None:
            is_plain = (~_may_have_trailing(data) & quick) | is_plain
    return F.when(is_plain, F.lit(None)).otherwise(whole)


def _may_have_trailing(column: Column) -> Column:
    """Tell whether text may follow the JSON object: a single '}' in the last byte ends it."""
    from pyspark.sql import functions as F  # noqa: N812

    start = F.substring(column, F.lit(1), F.length(column) - 1)
    return F.contains(start, F.lit(b"}")) | (F.substring(column, -1, 1) != F.lit(b"}"))


def _has_trailing(column: Column) -> Column:
    """Tell whether text follows the JSON object: from_json stops at the object's end.

    Where text may follow, the object is read once more as the first of exactly two elements of an
    array: text that closes the array or adds elements to it changes their number.
    """
    from pyspark.sql import functions as F  # noqa: N812

    more = _may_have_trailing(column)
    array = F.concat(F.lit("["), column.cast("string"), F.lit(f',{{"{_END}":true}}]'))
    elements = F.from_json(array, f"array<struct<{_END}: boolean>>")
    whole = (F.size(elements) == 2) & elements[1][_END]
    # CASE, not AND: Spark evaluates what occurs twice in an AND's right side for every row.
    return F.when(more, ~F.coalesce(whole, F.lit(False))).otherwise(F.lit(False))


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
        (F.col(_FAILED + name) | look[_BROKEN], words),
        (look[_TRAILING], F.lit(f"{name} has more text after its JSON object")),
        (look[_HALF_PAIR], F.lit(f"{name} {HALF_PAIR}")),
        *[(fails(column), F.lit(words)) for fails, words in checks(fields, name)],
    ]
