"""Protobuf data as a column by Spark's own `from_protobuf`, in the JVM.

It gives the same values and reasons as `protobuf_column`, the UDF, which is used where Spark lacks
the module, and for the few messages that Spark's reader cannot read (`protobuf_form`).
"""

from __future__ import annotations

import base64
import json
import secrets
import struct
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.registry.protobuf_form import MARK, ROOT, Form, form_of
from ottla.pipelines.source import protobuf_decoder
from ottla.pipelines.spark.jvm.classes import first_class
from ottla.registry.framing import HEAD_BYTES, head
from ottla.registry.protobuf_framing import write_indexes
from ottla.registry.protobuf_messages import pool_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

CLASS: Final = "org.apache.spark.sql.protobuf.ProtobufDataToCatalyst"
VALUE: Final = "value"
FAULT: Final = "fault"

_VALUE: Final[int] = struct.unpack("<q", secrets.token_bytes(8))[0]
# The years 1 to 9999, in microseconds since 1970; seconds far outside would overflow these.
_FIRST_US: Final = -62_135_596_800_000_000
_END_US: Final = 253_402_300_800_000_000
_MAX_S: Final = 1 << 39
_UNSIGNED_32: Final = (1 << 32) - 1
_UNSIGNED_64: Final = 1 << 64
_OF_32_BITS: Final = (13, 7)  # uint32 and fixed32
_DEFAULTS: Final[dict[str, Any]] = {
    "string": "",
    "boolean": False,
    "binary": b"",
    "double": 0.0,
    "float": 0.0,
}


def readable(framed: Framed) -> Form | None:
    """Return how Spark's own reader reads a column, None where it cannot, or is not there."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None or first_class(spark, [CLASS]) is None:
        return None
    reader = json.loads(framed.reader)
    return form_of(_message(reader), reader["shape"])


def _message(reader: dict[str, Any]) -> Any:
    pool, _ = pool_of(base64.b64decode(reader["files"]), reader["message"])
    return pool.FindMessageTypeByName(reader["message"])


def decoded(column: Column, framed: Framed, form: Form, type_: DataType, name: str) -> Column:
    """Return a column of struct<value, fault>, for data with a readable id."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
    from pyspark.sql.protobuf.functions import from_protobuf
    from pyspark.sql.types import StringType, StructField, StructType

    reader = json.loads(framed.reader)
    message = _message(reader)
    start, other = _framing(column, framed, reader["message"], name)
    data = F.substring(column, start + F.lit(1), F.length(column) - start)
    read = from_protobuf(
        F.concat(data, F.lit(form.mark(_VALUE))),
        ROOT,
        options={"mode": "PERMISSIVE"},
        binaryDescriptorSet=form.files,
    )
    returns = StructType([StructField(VALUE, type_), StructField(FAULT, StringType())])
    damaged = F.lit(f"{name} is not Protobuf data of {reader['message']}: it is damaged")
    late = F.lit(f"{name} {protobuf_decoder.LATE}")

    def judged(found: Column) -> Column:
        fault = F.when(start.isNull(), other)
        fault = fault.when(~found[MARK].eqNullSafe(F.lit(_VALUE)), damaged)
        if (is_late := _is_late(found, message, reader["shape"])) is not None:
            fault = fault.when(is_late, late)
        value = F.when(fault.isNull(), _struct(found, message, reader["shape"]))
        return F.struct(value.alias(VALUE), fault.alias(FAULT)).cast(returns)

    # As the variable of a function the message is read once, however often it is used.
    return F.when(column.isNotNull(), F.element_at(F.transform(F.array(read), judged), 1))


def _framing(column: Column, framed: Framed, message: str, name: str) -> tuple[Column, Column]:
    """Return how many bytes are in front of the message, null where it is another one; and why."""
    from pyspark.sql import functions as F  # noqa: N812

    start, why = F.when(column.isNull(), F.lit(None).cast("int")), F.when(column.isNull(), None)
    for one in framed.branches:
        if one.refused:
            continue
        for at, given in json.loads(one.writer):
            indexes = tuple(at)
            forms = [write_indexes(indexes), *([b"\x02\x00"] if indexes == (0,) else [])]
            for front in (head(one.id) + form for form in forms):
                is_it = F.substring(column, 1, len(front)) == F.lit(front)
                if given == message:
                    start = start.when(is_it, F.lit(len(front)))
                else:
                    why = why.when(is_it, F.lit(protobuf_decoder.other(name, given, message)))
    is_short = F.length(column) <= HEAD_BYTES
    why = why.when(is_short, F.lit(f"{name} {protobuf_decoder.NO_INDEXES}"))
    return start, why.otherwise(F.lit(f"{name} {protobuf_decoder.NO_MESSAGE}"))


def _struct(found: Column, message: Any, shape: dict[str, Any]) -> Column:
    """Return the columns of a message; where it is null those of an empty one."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(
        *(
            _field(found[f"f{field.number}"], field, how, inner).alias(name)
            for name, how, inner in shape["fields"]
            for field in (message.fields_by_name[name],)
        )
    )


def _field(found: Column, field: Any, how: str, inner: dict[str, Any]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if how == "repeated":
        return F.transform(found, lambda one: _value(one, field, inner))
    if how == "map":
        return _map(found, field, inner)
    value = _value(found, field, inner)
    return F.when(found.isNotNull(), value) if how == "given" else value


def _map(found: Column, field: Any, inner: dict[str, Any]) -> Column:
    """Return a map of its entries; of two entries with one key the last one counts."""
    from pyspark.sql import functions as F  # noqa: N812

    key_field, value_field = (field.message_type.fields_by_name[one] for one in ("key", "value"))
    plain = {"kind": "unsigned" if inner["unsigned"] else "plain", "type": inner["key"]}
    keys = F.transform(found, lambda one: _value(one["f1"], key_field, plain))
    values = F.transform(found, lambda one: _value(one["f2"], value_field, inner))
    last = F.transform(
        F.array_distinct(keys),
        lambda key: F.element_at(
            values, (F.size(keys) - F.array_position(F.reverse(keys), key) + 1).cast("int")
        ),
    )
    is_single = F.size(F.array_distinct(keys)) == F.size(keys)
    return F.map_from_arrays(F.array_distinct(keys), F.when(is_single, values).otherwise(last))


def _value(found: Column, field: Any, inner: dict[str, Any]) -> Column:
    """Return Spark's value of one of Protobuf's; the default where it is null."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = inner["kind"]
    if kind == "struct":
        return _struct(found, field.message_type, inner)
    if kind == "enum":
        number = F.coalesce(found, F.lit(0))
        pairs = [(F.lit(int(one)), F.lit(name)) for one, name in inner["names"].items()]
        names = F.create_map(*(part for pair in pairs for part in pair))
        return F.coalesce(F.element_at(names, number), number.cast("string"))
    if kind == "timestamp":
        return F.timestamp_micros(F.when(~_is_late_time(found), _micros(found)))
    if kind == "duration":
        seconds, nanos = _time(found)
        whole = F.when(~_is_long(found), seconds).cast("decimal(12,0)")
        return (whole + nanos.cast("decimal(10,0)") / F.lit(1_000_000_000)).cast(inner["type"])
    if kind.startswith("wrapped"):
        unwrapped = field.message_type.fields_by_name["value"]
        plain = {"kind": "unsigned" if kind != "wrapped" else "plain", "type": inner["type"]}
        return _value(found["f1"], unwrapped, plain)
    if kind == "unsigned":
        exact = F.coalesce(found, F.lit(0)).cast("decimal(20,0)")
        wrapped = (exact + F.lit(str(_UNSIGNED_64)).cast("decimal(20,0)")).cast("decimal(20,0)")
        return F.when(exact < 0, wrapped).otherwise(exact)
    if field.type in _OF_32_BITS:
        return F.coalesce(found, F.lit(0)).cast("bigint").bitwiseAND(F.lit(_UNSIGNED_32))
    default = F.lit(_DEFAULTS.get(inner["type"], 0)).cast(_SQL.get(inner["type"], inner["type"]))
    return F.coalesce(found, default)


_SQL: Final = {"long": "bigint", "integer": "int"}


def _time(found: Column) -> tuple[Column, Column]:
    """Return the seconds and nanoseconds of a time."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(found["f1"], F.lit(0)), F.coalesce(found["f2"], F.lit(0))


def _micros(found: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    seconds, nanos = _time(found)
    inside = F.when(seconds.between(-_MAX_S, _MAX_S), seconds)
    return inside * F.lit(1_000_000) + F.floor(nanos / F.lit(1_000)).cast("bigint")


def _is_late_time(found: Column) -> Column:
    """Tell whether a time is outside of the years that Spark and Python both have."""
    from pyspark.sql import functions as F  # noqa: N812

    micros = _micros(found)
    return F.coalesce((micros < F.lit(_FIRST_US)) | (micros >= F.lit(_END_US)), F.lit(True))


def _is_long(found: Column) -> Column:
    """Tell whether a duration is longer than Protobuf allows."""
    seconds, _ = _time(found)
    most = protobuf_decoder.MAX_DURATION_S
    return ~seconds.between(-most, most)


def _is_late(found: Column, message: Any, shape: dict[str, Any]) -> Column | None:
    """Tell whether any time in a message cannot be kept, None where it has no times."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = []
    for name, how, inner in shape["fields"]:
        field = message.fields_by_name[name]
        at = found[f"f{field.number}"]
        if how not in ("map", "repeated"):
            part = _of_one(at, field, inner)
        elif how == "map":
            value = field.message_type.fields_by_name["value"]
            part = _of_any(F.transform(at, lambda one: one["f2"]), value, inner)
        else:
            part = _of_any(at, field, inner)
        if part is not None:
            parts.append(F.coalesce(part, F.lit(False)))
    if not parts:
        return None
    some = parts[0]
    for part in parts[1:]:
        some = some | part
    return some


def _of_any(found: Column, field: Any, inner: dict[str, Any]) -> Column | None:
    from pyspark.sql import functions as F  # noqa: N812

    if not _has_times(inner):
        return None
    return F.exists(found, lambda one: F.coalesce(_of_one(one, field, inner), F.lit(False)))


def _has_times(inner: dict[str, Any]) -> bool:
    if inner["kind"] == "struct":
        return any(_has_times(one) for _, _, one in inner["fields"])
    return inner["kind"] in ("timestamp", "duration")


def _of_one(found: Column, field: Any, inner: dict[str, Any]) -> Column | None:
    if inner["kind"] == "struct":
        return _is_late(found, field.message_type, inner)
    if inner["kind"] == "timestamp":
        return found.isNotNull() & _is_late_time(found)
    return found.isNotNull() & _is_long(found) if inner["kind"] == "duration" else None
