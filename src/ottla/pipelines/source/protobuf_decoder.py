"""Decodes Protobuf data in Python, on the executors.

Executors do not have Ottla: they get what is in this file, and `registry.protobuf_framing`, by
value (`protobuf_column`). So it imports nothing else of Ottla's, and google.protobuf inside of
functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ottla.pipelines.failures.marks import NO_PROTOBUF
from ottla.registry.protobuf_framing import read_indexes

NO_INDEXES = "has Protobuf's framing damaged: no message indexes"
NO_MESSAGE = "has Protobuf's framing damaged: its indexes name no message of its schema"
LATE = "has a time outside of the years 1 to 9999, or a duration of more than 10,000 years"
MAX_DURATION_S = 315_576_000_000
"""Protobuf's own limit."""
HEAD = 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NANOS = Decimal(1_000_000_000)


def decoder(
    name: str,
    files: bytes,
    message: str,
    shape: Mapping[str, Any],
    messages: Mapping[bytes, Mapping[tuple[int, ...], str]],
) -> Callable[[bytes | None], tuple[Any, str | None] | None]:
    """Return a function from framed data to (value, None) or (None, why it cannot be read).

    It returns None for null and for data with another id. `files` is a FileDescriptorSet with
    `message`; `messages` gives the names of the messages of each known id, by the five bytes in
    front of the data. `name` is the column's.
    """
    loaded: list[tuple[Any, Any, Any]] = []

    def decode(data: bytes | None) -> tuple[Any, str | None] | None:
        known = None if data is None else messages.get(bytes(data[:HEAD]))
        if data is None or known is None:
            return None
        if not loaded:
            loaded.append(load(files, message, shape))
        parse, convert, is_strange = loaded[0]
        data = bytes(data)
        try:
            indexes, start = read_indexes(data, HEAD)
        except ValueError:
            return None, f"{name} {NO_MESSAGE if data[HEAD:] else NO_INDEXES}"
        given = known.get(indexes)
        if given is None:
            return None, f"{name} {NO_MESSAGE}"
        if given != message:
            return None, other(name, given, message)
        try:
            found = parse(data[start:])
        except Exception as error:
            if type(error).__name__ != "DecodeError":
                raise
            found = None
        if found is None or is_strange(found):
            return None, f"{name} is not Protobuf data of {message}: it is damaged"
        if not found.IsInitialized():
            lacking = found.FindInitializationErrors()[0]
            return None, f"{name} lacks the field {lacking}, which is required"
        try:
            return convert(found), None
        except OverflowError:
            return None, f"{name} {LATE}"

    return decode


def other(name: str, given: str, message: str) -> str:
    """Return the reason for data of another message."""
    return f"{name} is {given}, not {message}, by which the column is read"


def load(files: bytes, message: str, shape: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return what parses a message's bytes, what makes a row of a message, and what tells whether
    the bytes have a field in another form than the message's.
    """
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message_factory import GetMessageClass
    except ImportError:
        raise RuntimeError(
            f"{NO_PROTOBUF}: the executors' Python lacks the package protobuf. "
            "Install it there: pip install protobuf"
        ) from None
    pool = DescriptorPool()
    for one in FileDescriptorSet.FromString(files).file:
        pool.AddSerializedFile(one.SerializeToString())
    found = pool.FindMessageTypeByName(message)
    return GetMessageClass(found).FromString, struct_of(shape), strangeness_of(found)


def strangeness_of(message: Any) -> Callable[[Any], bool]:
    """Return what tells whether data has a field of the message in another form.

    Protobuf's parser takes such a field for an unknown one: data of no schema that can be read has
    it. The enums of proto2 are no sign: a number that they do not know is unknown, too.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet

    known = {
        field.number
        for field in message.fields
        if field.enum_type is None or not field.enum_type.is_closed
    }
    return lambda found: any(one.field_number in known for one in UnknownFieldSet(found))


def struct_of(shape: Mapping[str, Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes a tuple of a message's fields."""
    fields = [field_of(name, how, inner) for name, how, inner in shape["fields"]]
    return lambda message: tuple([field(message) for field in fields])


def field_of(name: str, how: str, shape: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return what takes one field out of a message."""
    value = value_of(shape)
    if how == "map":
        key = Decimal if shape["unsigned"] else None

        def entries(message: Any) -> dict[Any, Any]:
            found = getattr(message, name).items()
            return {key(at) if key else at: value(one) if value else one for at, one in found}

        return entries
    if how == "repeated":
        if value is None:
            return lambda message: list(getattr(message, name))
        return lambda message: [value(one) for one in getattr(message, name)]
    if how == "given":

        def given(message: Any) -> Any:
            if not message.HasField(name):
                return None
            found = getattr(message, name)
            return value(found) if value else found

        return given
    if value is None:
        return lambda message: getattr(message, name)
    return lambda message: value(getattr(message, name))


def value_of(shape: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return what makes Spark's value of Protobuf's, None where they are the same."""
    kind = shape["kind"]
    if kind == "struct":
        return struct_of(shape)
    if kind == "enum":
        names = {int(number): name for number, name in shape["names"].items()}
        return lambda number: names.get(number) or str(number)
    if kind == "timestamp":
        return lambda time: (
            EPOCH + timedelta(seconds=time.seconds, microseconds=time.nanos // 1_000)
        )
    if kind == "duration":
        return length_of
    if kind == "json":
        from google.protobuf.json_format import MessageToDict

        return lambda message: json.dumps(MessageToDict(message), ensure_ascii=False)
    if kind == "unsigned":
        return Decimal
    if kind == "wrapped":
        return unwrapped
    return unwrapped_decimal if kind == "wrapped unsigned" else None


def length_of(time: Any) -> Decimal:
    """Return a duration in seconds. Raises OverflowError."""
    if abs(time.seconds) > MAX_DURATION_S:
        raise OverflowError
    return Decimal(time.seconds) + Decimal(time.nanos) / NANOS


def unwrapped(message: Any) -> Any:
    """Return the value of a wrapper."""
    return message.value


def unwrapped_decimal(message: Any) -> Decimal:
    """Return the value of a wrapper of an unsigned 64-bit number."""
    return Decimal(message.value)
