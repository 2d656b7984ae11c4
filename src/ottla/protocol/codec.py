"""Messages to bytes and back, compiled once per message class from kio's definitions.

The definitions (which fields, of which type, in which version) are kio's generated dataclasses.
The decoding is ours: kio's native reader reserves memory for an array before it has looked whether
the bytes can hold it, and a hostile length ends the whole process. Differences for the caller:
times are integers of milliseconds, `records` is a view into the frame.
"""

import dataclasses
import struct
import types
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin

from ottla.protocol import primitives
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.primitives import Buffer, Output, Reader, Writer, read_varint, write_varint

_FIXED: dict[str, tuple[Reader, Writer]] = {
    "int8": (primitives.read_int8, primitives.write_int8),
    "int16": (primitives.read_int16, primitives.write_int16),
    "int32": (primitives.read_int32, primitives.write_int32),
    "int64": (primitives.read_int64, primitives.write_int64),
    "uint16": (primitives.read_uint16, primitives.write_uint16),
    "float64": (primitives.read_float64, primitives.write_float64),
    "bool": (primitives.read_bool, primitives.write_bool),
    "uuid": (primitives.read_uuid, primitives.write_uuid),
    "error_code": (primitives.read_error_code, primitives.write_int16),
    "timedelta_i32": (primitives.read_int32, primitives.write_int32),
    "timedelta_i64": (primitives.read_int64, primitives.write_int64),
    "datetime_i64": (primitives.read_int64, primitives.write_int64),
}


class Field(NamedTuple):
    name: str
    tag: int | None
    default: Any
    """What an absent field holds: the definition's default, else the type's zero value."""
    read: Reader
    write: Writer


class Codec(NamedTuple):
    cls: type
    fields: tuple[Field, ...]
    defaults: dict[str, Any]
    read: Reader
    write: Writer


def in_milliseconds(value: Any) -> Any:
    """A default of a definition as the codec's own value."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value


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
    return _FIXED[kafka_type]


def _write_time_or_minus_one(output: Output, value: int | None) -> None:
    primitives.write_int64(output, -1 if value is None else value)


def _nullable_entity(codec: Codec) -> tuple[Reader, Writer]:
    """A struct that may be null: one byte before it, -1 or 1 (KIP-893)."""

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


def _compile_field(field: dataclasses.Field[Any], compact: bool) -> Field:
    tag = field.metadata.get("tag")
    kafka_type = field.metadata.get("kafka_type")
    annotation, null_allowed = _unwrap_optional(field.type)
    if get_origin(annotation) is tuple:
        element = get_args(annotation)[0]
        item = (
            _primitive(kafka_type, compact, null_allowed=False)
            if kafka_type
            else codec_of(element)[-2:]
        )
        read, write = primitives.array(item, compact, null_allowed)
    elif kafka_type:
        read, write = _primitive(kafka_type, compact, null_allowed)
    elif null_allowed and tag is None:
        read, write = _nullable_entity(codec_of(annotation))
    else:
        read, write = codec_of(annotation)[-2:]
    default = (
        _zero(annotation, null_allowed, kafka_type)
        if field.default is dataclasses.MISSING
        else in_milliseconds(field.default)
    )
    return Field(field.name, tag, default, read, write)


def read_tags(
    buffer: Buffer, position: int, tagged: dict[int, Field], values: dict[str, Any]
) -> int:
    """The tagged fields behind an entity (KIP-482); unknown tags are passed over."""
    count, position = read_varint(buffer, position)
    for _ in range(count):
        tag, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        content, position = primitives.take(buffer, position, size)
        if tag in tagged:
            values[tagged[tag].name], _ = tagged[tag].read(content, 0)
    return position


def _write_tags(output: Output, value: Any, tagged: dict[int, Field]) -> None:
    present = []
    for tag in sorted(tagged):
        content = getattr(value, tagged[tag].name)
        if content != tagged[tag].default:
            present.append((tag, tagged[tag].write, content))
    write_varint(output, len(present))
    for tag, write, content in present:
        inner = Output()
        write(inner, content)
        encoded = b"".join(inner.parts())
        write_varint(output, tag)
        write_varint(output, len(encoded))
        output.append_data(encoded)


@cache  # bounded by the number of message classes
def codec_of(cls: Any) -> Codec:
    """The codec of one of kio's message classes, compiled at first use."""
    flexible: bool = cls.__flexible__
    fields = tuple(_compile_field(field, flexible) for field in dataclasses.fields(cls))
    plain = tuple((field.name, field.read) for field in fields if field.tag is None)
    written = tuple((field.name, field.write) for field in fields if field.tag is None)
    tagged = {field.tag: field for field in fields if field.tag is not None}
    tag_defaults = {field.name: field.default for field in tagged.values()}
    construct: Callable[..., Any] = cls

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = dict(tag_defaults)
        for name, read_field in plain:
            values[name], position = read_field(buffer, position)
        if flexible:
            position = read_tags(buffer, position, tagged, values)
        return construct(**values), position

    def write(output: Output, value: Any) -> None:
        for name, write_field in written:
            write_field(output, getattr(value, name))
        if tagged:
            _write_tags(output, value, tagged)
        elif flexible:
            output.tail.append(0)

    return Codec(cls, fields, {field.name: field.default for field in fields}, read, write)


def decode(cls: type, buffer: Buffer, position: int = 0) -> tuple[Any, int]:
    """One message of class `cls` at `position`, and the position behind it.

    Raises DecodeError, and nothing else, whatever the bytes.
    """
    try:
        return codec_of(cls).read(buffer, position)
    except (struct.error, IndexError):
        raise DecodeError(f"{cls.__name__}: the bytes end within a field") from None
    except DecodeError as error:
        raise DecodeError(f"{cls.__name__}: {error}") from None


def encode(message: Any, output: Output | None = None) -> Output:
    """The bytes of `message`, appended to `output`."""
    output = output if output is not None else Output()
    codec_of(message.__class__).write(output, message)
    return output
