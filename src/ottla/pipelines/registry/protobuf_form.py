"""A message as Spark's own reader (`from_protobuf`) is given it. Pure.

Spark's reader has its own types for some messages, a default for what is absent or not, by options
that differ between versions, and it finds messages by name at a file's top alone. So it gets other
descriptors of the same bytes: one file, whose fields are named by their numbers (`f1`), all with
presence; an enum is an int32, a map a repeated entry, and a Timestamp two numbers. The columns are
made of these in SQL (`source.protobuf_spark`).

Data ends with a mark, a field that the message does not have: what has no mark at its end is
damaged.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.registry.protobuf_schema import Shape

ROOT: Final = "M0"
MARK: Final = "mark"
MAX_NUMBER: Final = (1 << 29) - 1
"""Protobuf's greatest number of a field."""

_INT32, _INT64, _FIXED64, _GROUP, _MESSAGE = 5, 3, 6, 10, 11
_OPTIONAL, _REPEATED = 1, 3
_FILE: Final = "ottla.proto"
_TIME: Final = "T"


@dataclass(frozen=True, slots=True)
class Form:
    """`files` is a FileDescriptorSet with the message ROOT; `number` is that of the field MARK."""

    files: bytes
    number: int

    def mark(self, value: int) -> bytes:
        """Return the bytes of the mark with a value of 64 bits."""
        tag, found = self.number << 3 | 1, bytearray()
        while tag > 0x7F:
            found.append(tag & 0x7F | 0x80)
            tag >>= 7
        return bytes(found) + bytes([tag]) + struct.pack("<q", value)


def form_of(message: Any, shape: Shape) -> Form | None:
    """Return how Spark reads a message (its descriptor), None where only Google's parser can.

    That is for JSON (Struct), for required fields, for groups and for the enums of proto2, which
    leave out a number that they do not know.
    """
    made = _Form()
    if not made.add(message, shape):
        return None
    number = MAX_NUMBER
    while number in message.fields_by_number:
        number -= 1
    made.field(made.file.message_type[0], MARK, number).type = _FIXED64
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return Form(FileDescriptorSet(file=[made.file]).SerializeToString(), number)


class _Form:
    """One file that grows."""

    def __init__(self) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self.file = FileDescriptorProto(name=_FILE, syntax="proto3")

    def _message(self, name: str = "") -> Any:
        return self.file.message_type.add(name=name or f"M{len(self.file.message_type)}")

    def field(self, message: Any, name: str, number: int, *, is_repeated: bool = False) -> Any:
        if is_repeated:
            return message.field.add(name=name, number=number, label=_REPEATED)
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
        how = {"label": _OPTIONAL, "proto3_optional": True, "oneof_index": index}
        return message.field.add(name=name, number=number, **how)

    def add(self, message: Any, shape: Shape) -> str:
        """Add a message; return its name, empty where Spark cannot read it."""
        made = self._message()
        name = str(made.name)
        if any(_is_required(field) for field in message.fields):
            return ""
        for field_name, how, inner in shape["fields"]:
            field = message.fields_by_name[field_name]
            is_repeated = how in ("map", "repeated")
            one = self.field(made, f"f{field.number}", field.number, is_repeated=is_repeated)
            if not (
                self._entry(one, field, inner) if how == "map" else self._type(one, field, inner)
            ):
                return ""
        return name

    def _entry(self, made: Any, field: Any, inner: Shape) -> bool:
        entry = self._message()
        made.type, made.type_name = _MESSAGE, f".{entry.name}"
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        self.field(entry, "f1", 1).type = key.type
        return self._type(self.field(entry, "f2", 2), value, inner)

    def _type(self, made: Any, field: Any, inner: Shape) -> bool:
        """Give a field its type; False where Spark cannot read it."""
        kind = inner["kind"]
        if kind == "json" or field.type == _GROUP or (kind == "enum" and field.enum_type.is_closed):
            return False
        if kind in ("plain", "unsigned"):
            made.type = field.type
        elif kind == "enum":
            made.type = _INT32
        else:
            made.type = _MESSAGE
            name = self._of_message(field.message_type, inner)
            made.type_name = f".{name}"
            return bool(name)
        return True

    def _of_message(self, message: Any, inner: Shape) -> str:
        if inner["kind"] == "struct":
            return self.add(message, inner)
        if inner["kind"] in ("timestamp", "duration"):
            return self._time()
        wrapper = self._message()
        self.field(wrapper, "f1", 1).type = message.fields_by_name["value"].type
        return str(wrapper.name)

    def _time(self) -> str:
        if not any(one.name == _TIME for one in self.file.message_type):
            made = self._message(_TIME)
            self.field(made, "f1", 1).type = _INT64
            self.field(made, "f2", 2).type = _INT32
        return _TIME


def _is_required(field: Any) -> bool:
    """Tell whether a field is required. Versions of Protobuf before 6 have its `label` alone."""
    found = getattr(field, "is_required", None)
    return bool(field.label == field.LABEL_REQUIRED if found is None else found)
