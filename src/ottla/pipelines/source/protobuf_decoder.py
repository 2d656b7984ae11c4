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

from ottla.pipelines.registry.protobuf_framing import read_indexes

NO_PROTOBUF = "OTTLA_NO_PROTOBUF"
"""Begins the failure of an executor without the package protobuf."""
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
    loaded: list[tuple[Any, Any]] = []

    def decode(data: bytes | None) -> tuple[Any, str | None] | None:
        known = None if data is None else messages.get(bytes(data[:HEAD]))
        if data is None or known is None:
            return None
        if not loaded:
            loaded.append(load(files, message, shape))
        parse, convert = loaded[0]
        data = bytes(data)
        try:
            indexes, start = read_indexes(data, HEAD)
        except ValueError as error:
            return None, f"{name} has Protobuf's framing damaged: {error}"
        given = known.get(indexes)
        if given != message:
            which = given or f"the message with the indexes {list(indexes)}, which is not there"
            return None, f"{name} is {which}, not {message}, by which the column is read"
        try:
            found = parse(data[start:])
        except Exception as error:
            if type(error).__name__ != "DecodeError":
                raise
            return None, f"{name} is not Protobuf data of {message}: it is damaged"
        if not found.IsInitialized():
            lacking = found.FindInitializationErrors()[0]
            return None, f"{name} lacks the field {lacking}, which is required"
        try:
            return convert(found), None
        except OverflowError:
            return None, f"{name} has a time outside of the years 1 to 9999"

    return decode


def load(files: bytes, message: str, shape: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what parses a message's bytes, and what makes a row of a message."""
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
    return GetMessageClass(pool.FindMessageTypeByName(message)).FromString, struct_of(shape)


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
        return lambda time: time.seconds + time.nanos / NANOS
    if kind == "json":
        from google.protobuf.json_format import MessageToDict

        return lambda message: json.dumps(MessageToDict(message), ensure_ascii=False)
    if kind == "unsigned":
        return Decimal
    if kind == "wrapped":
        return unwrapped
    return unwrapped_decimal if kind == "wrapped unsigned" else None


def unwrapped(message: Any) -> Any:
    """Return the value of a wrapper."""
    return message.value


def unwrapped_decimal(message: Any) -> Decimal:
    """Return the value of a wrapper of an unsigned 64-bit number."""
    return Decimal(message.value)
