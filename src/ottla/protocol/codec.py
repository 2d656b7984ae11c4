"""Encodes and decodes messages, with code compiled once per message class from kio's definitions.

The definitions (which fields, of which type, in which version) are kio's generated dataclasses.
The decoding is ours: kio's native reader allocates memory for an array before it checks whether the
bytes can hold it, so a hostile length ends the whole process. Differences for the caller: times
are integers of milliseconds, `records` is a slice of the frame, and messages are instances of
subclasses of kio's classes with mutable attributes (a frozen dataclass is slow to fill).
"""

import dataclasses
import struct
import types
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from ottla.protocol import primitives
from ottla.protocol.codec_source import Field, functions_of
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.message_budget import BEYOND_LIMITS, MESSAGE, Budget, LongMessageError, left
from ottla.protocol.primitives import Buffer, Output, Reader, Writer

_NUMBERS: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "bool": "?",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""Types of a fixed size, with their codes in the struct module."""
_OTHERS: Final[dict[str, tuple[Reader, Writer]]] = {
    "uuid": (primitives.read_uuid, primitives.write_uuid),
    "error_code": (primitives.read_error_code, primitives.write_int16),
}


class Codec(NamedTuple):
    cls: type
    fields: tuple[Field, ...]
    defaults: dict[str, Any]
    builder: Any
    """See `codec_source.Functions`."""
    read: Reader
    write: Writer


def as_ours(value: Any) -> Any:
    """A definition's default, as this codec's value: times in milliseconds, our error codes."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return ErrorCode(value) if isinstance(value, IntEnum) else value


def _unwrap_optional(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [arg for arg in get_args(annotation) if arg is not type(None)]
        assert len(inner) == 1, annotation
        return inner[0], True
    return annotation, False


def _primitive(kafka_type: str, compact: bool, null_allowed: bool) -> tuple[Reader, Writer]:
    if kafka_type == "string":
        return primitives.text(compact, null_allowed)
    if kafka_type in ("bytes", "records"):
        return primitives.data(compact, null_allowed, copied=kafka_type == "bytes")
    if kafka_type == "datetime_i64" and null_allowed:
        return primitives.read_int64, _write_time_or_minus_one
    if kafka_type in _OTHERS:
        return _OTHERS[kafka_type]
    return primitives.fixed(_NUMBERS[kafka_type])


def _write_time_or_minus_one(output: Output, value: int | None) -> None:
    primitives.write_int64(output, -1 if value is None else value)


def _nullable_entity(codec: Codec) -> tuple[Reader, Writer]:
    """A nullable struct: one byte before it, -1 or 1 (KIP-893)."""

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        marker, position = primitives.read_int8(buffer, position)
        return (None, position) if marker < 0 else codec.read(buffer, position)

    def write(output: Output, value: Any) -> None:
        primitives.write_int8(output, -1 if value is None else 1)
        if value is not None:
            codec.write(output, value)

    return read, write


def _zero(annotation: Any, null_allowed: bool, kafka_type: str | None) -> Any:
    if null_allowed or kafka_type == "uuid":
        return -1 if kafka_type == "datetime_i64" else None
    if get_origin(annotation) is tuple:
        return ()
    if kafka_type is None:
        codec = codec_of(annotation)
        return codec.cls(**codec.defaults)
    by_type = {"string": "", "bytes": b"", "records": b"", "bool": False, "float64": 0.0}
    return ErrorCode.none if kafka_type == "error_code" else by_type.get(kafka_type, 0)


def _field(field: dataclasses.Field[Any], compact: bool) -> Field:
    tag = field.metadata.get("tag")
    kafka_type = field.metadata.get("kafka_type")
    annotation, null_allowed = _unwrap_optional(field.type)
    shape, code, item = "other", "", None
    if get_origin(annotation) is tuple:
        element = get_args(annotation)[0]
        shape = "array"
        item = (
            _primitive(kafka_type, compact, null_allowed=False)
            if kafka_type
            else codec_of(element)[-2:]
        )
        read, write = primitives.array(item, compact, null_allowed)
    elif kafka_type:
        read, write = _primitive(kafka_type, compact, null_allowed)
        shape = {"string": "text", "bytes": "bytes", "records": "records"}.get(kafka_type, "other")
        if kafka_type in _NUMBERS and not null_allowed:
            shape, code = "number", _NUMBERS[kafka_type]
        elif kafka_type == "error_code":
            shape, code = "error", "h"
    elif null_allowed and tag is None:
        read, write = _nullable_entity(codec_of(annotation))
    else:
        read, write = codec_of(annotation)[-2:]
    default = (
        _zero(annotation, null_allowed, kafka_type)
        if field.default is dataclasses.MISSING
        else as_ours(field.default)
    )
    return Field(field.name, tag, default, read, write, shape, code, null_allowed, item)


@cache  # bounded by the number of message classes
def codec_of(cls: Any) -> Codec:
    """The codec of one of kio's message classes, or of a message's own class; compiled at first
    use.
    """
    definition = cls.__dict__.get("__definition__")
    if definition is not None:
        found: Codec = codec_of(definition)
        return found
    flexible: bool = cls.__flexible__
    fields = tuple(_field(field, flexible) for field in dataclasses.fields(cls))
    # kio's classes are frozen. Replace both methods: CPython is slow if only one is replaced.
    frozen = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    attributes = {"__slots__": (), **frozen, "__definition__": cls}
    own = type(cls.__name__, (cls,), {**attributes, "__module__": cls.__module__})
    read, write, builder = functions_of(own, fields, flexible=flexible)
    defaults = {field.name: field.default for field in fields}
    return Codec(own, fields, defaults, builder, read, write)


def decode(
    cls: type, buffer: Buffer, position: int = 0, budget: Budget = MESSAGE
) -> tuple[Any, int]:
    """The message of class `cls` at `position`, and the position after it.

    Raises DecodeError, and nothing else, for any bytes; with a smaller `budget` than MESSAGE also
    LongMessageError, as the message may be decoded elsewhere.
    """
    if left.get() is not budget:
        left.set(budget)
    try:
        return codec_of(cls).read(buffer, position)
    except LongMessageError:
        if budget < MESSAGE:
            raise
        raise DecodeError(f"{cls.__name__}: {BEYOND_LIMITS}") from None
    except (struct.error, IndexError):
        raise DecodeError(f"{cls.__name__}: the bytes end within a field") from None
    except UnicodeDecodeError as error:
        why = f"a string that is not UTF-8: {error.reason}"
        raise DecodeError(f"{cls.__name__}: {why}") from None
    except DecodeError as error:
        raise DecodeError(f"{cls.__name__}: {error}") from None


def encode(message: Any, output: Output | None = None) -> Output:
    """The bytes of `message`, appended to `output`. Raises LongMessageError if `output` takes fewer
    elements.
    """
    if output is None:
        output = Output()
    codec_of(message.__class__).write(output, message)
    return output
