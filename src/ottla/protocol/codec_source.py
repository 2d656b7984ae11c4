"""Writes the Python source of a message's reader, writer and builder.

One function for each struct, as straight-line code: consecutive numbers are read and written with
one `struct` call, and an object is filled without a keyword dictionary. This takes a third of the
time of a loop over field descriptions. Rare cases (a long varint, tagged fields, null) are left to
the functions of `primitives`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla.protocol import primitives
from ottla.protocol.errors import DecodeError
from ottla.protocol.message_budget import spend_tags
from ottla.protocol.primitives import Buffer, Reader, Writer


class Field(NamedTuple):
    """One field of a struct. `shape` selects the generated code."""

    name: str
    tag: int | None
    default: Any
    """The value of an absent field: the definition's default, else the type's zero value."""
    read: Reader
    write: Writer
    shape: str
    """"number", "error" (read as ErrorCode, written as a number), "text", "bytes", "records",
    "array", or "other".
    """
    code: str = ""
    """A number's code in the struct module."""
    null_allowed: bool = False
    item: tuple[Reader, Writer] | None = None
    """An array's element."""


class Functions(NamedTuple):
    read: Reader
    write: Writer
    builder: Any
    """Called with a function, returns `build(**fields)`, which passes unknown fields to it."""


_MAX_TEXT_BYTES: Final = primitives.MAX_STRING_BYTES


def functions_of(cls: type, fields: Sequence[Field], *, flexible: bool) -> Functions:
    """The functions of one struct; instances are of `cls`, whose attributes are mutable."""
    source = _Source(cls, fields, flexible)
    namespace = source.namespace
    exec("\n".join(source.lines()), namespace)
    return Functions(namespace["read"], namespace["write"], namespace["builder"])


def _bad_size(buffer: Buffer, position: int, size: int) -> DecodeError:
    left = len(buffer) - position
    return DecodeError(f"a field of {size} bytes, but {left} are left")


def _bad_text(buffer: Buffer, position: int, size: int) -> DecodeError:
    if size > _MAX_TEXT_BYTES:
        return DecodeError(f"a string of {size} bytes; the maximum is {_MAX_TEXT_BYTES}")
    return _bad_size(buffer, position, size)


def _null() -> DecodeError:
    return DecodeError("null in a field that must not be null")


class _Source:
    def __init__(self, cls: type, fields: Sequence[Field], flexible: bool) -> None:
        self._all = fields
        self._plain = [field for field in fields if field.tag is None]
        self._tagged = {field.tag: field for field in fields if field.tag is not None}
        self._flexible = flexible
        self.namespace: dict[str, Any] = {
            "new": object.__new__,
            "cls": cls,
            "read_varint": primitives.read_varint,
            "write_varint": primitives.write_varint,
            "read_tags": read_tags,
            "write_tags": write_tags,
            "tagged": self._tagged,
            "bad_size": _bad_size,
            "bad_text": _bad_text,
            "null": _null,
            "read_int16": Struct(">h").unpack_from,
            "read_int32": Struct(">i").unpack_from,
            "pack_int16": Struct(">h").pack,
            "pack_int32": Struct(">i").pack,
        }

    def lines(self) -> Iterator[str]:
        yield "def read(buffer, position):"
        yield "    size = len(buffer)"
        yield from self._indented(self._read_lines())
        yield "def write(output, message):"
        yield "    tail = output.tail"
        yield from self._indented(self._write_lines())
        yield "def builder(drop):"
        yield from self._indented(self._builder_lines())

    @staticmethod
    def _indented(lines: Iterator[str]) -> Iterator[str]:
        return (f"    {line}" for line in lines)

    def _name(self, value: Any, like: str) -> str:
        """The name of `value` in the generated code."""
        name = f"{like}_{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def _runs(self, *numbers: str) -> Iterator[list[Field]]:
        """The plain fields; consecutive ones of these shapes together."""
        for is_number, run in groupby(self._plain, key=lambda field: field.shape in numbers):
            if is_number:
                yield list(run)
            else:
                yield from ([field] for field in run)

    def _read_lines(self) -> Iterator[str]:
        for run in self._runs("number"):
            field = run[0]
            if field.shape == "number":
                layout = Struct(">" + "".join(each.code for each in run))
                names = "".join(f"v_{each.name}, " for each in run)
                yield f"{names}= {self._name(layout.unpack_from, 'unpack')}(buffer, position)"
                yield f"position += {layout.size}"
            elif field.shape in ("other", "error"):
                read = self._name(field.read, "read")
                yield f"v_{field.name}, position = {read}(buffer, position)"
            else:
                yield from self._read_sized(field)
        yield "message = new(cls)"
        for field in self._plain:
            yield f"message.{field.name} = v_{field.name}"
        for field in self._tagged.values():
            yield f"message.{field.name} = {self._name(field.default, 'default')}"
        if self._flexible:
            yield "if buffer[position]:"
            yield "    values = {}"
            yield "    position = read_tags(buffer, position, tagged, values)"
            yield "    for name, value in values.items(): setattr(message, name, value)"
            yield "    return message, position"
            yield "return message, position + 1"
        else:
            yield "return message, position"

    def _read_sized(self, field: Field) -> Iterator[str]:
        """A string, bytes or an array: `count` is its length, -1 for null."""
        name = f"v_{field.name}"
        if self._flexible:
            yield "count = buffer[position] - 1"
            yield "if count < 127: position += 1"
            yield "else:"
            yield "    count, position = read_varint(buffer, position)"
            yield "    count -= 1"
        elif field.shape == "text":
            yield "count, = read_int16(buffer, position)"
            yield "position += 2"
        else:
            yield "count, = read_int32(buffer, position)"
            yield "position += 4"
        if field.shape == "array":
            assert field.item is not None
            yield "if count == 1:"
            yield f"    item, position = {self._name(field.item[0], 'read')}(buffer, position)"
            yield f"    {name} = (item,)"
            yield "else:"
            rest = primitives.items_reader(field.item[0], field.null_allowed)
            yield f"    {name}, position = {self._name(rest, 'read')}(buffer, position, count)"
            return
        yield "if count == -1:"
        yield f"    {name} = None" if field.null_allowed else "    raise null()"
        yield "else:"
        yield "    end = position + count"
        if field.shape == "text":
            yield f"    if count < 0 or end > size or count > {_MAX_TEXT_BYTES}:"
            yield "        raise bad_text(buffer, position, count)"
            yield f'    {name} = str(buffer[position:end], "utf-8")'
        else:
            yield "    if count < 0 or end > size: raise bad_size(buffer, position, count)"
            data = "buffer[position:end]"
            yield f"    {name} = " + (data if field.shape == "records" else f"bytes({data})")
        yield "    position = end"

    def _write_lines(self) -> Iterator[str]:
        for run in self._runs("number", "error"):
            field = run[0]
            if field.shape in ("number", "error"):
                pack = self._name(Struct(">" + "".join(each.code for each in run)).pack, "pack")
                values = ", ".join(f"message.{each.name}" for each in run)
                yield f"tail += {pack}({values})"
            elif field.shape == "other":
                yield f"{self._name(field.write, 'write')}(output, message.{field.name})"
                yield "tail = output.tail"
            else:
                yield from self._write_sized(field)
        if self._tagged:
            unset = " and ".join(
                f"message.{field.name} is {self._name(field.default, 'default')}"
                for field in self._tagged.values()
            )
            yield f"if {unset}: tail.append(0)"
            yield "else: write_tags(output, message, tagged)"
        elif self._flexible:
            yield "tail.append(0)"
        yield "return"

    def _write_sized(self, field: Field) -> Iterator[str]:
        yield f"value = message.{field.name}"
        yield "if value is None:"
        yield f"    {self._name(field.write, 'write')}(output, None)"
        yield "else:"
        if field.shape == "text":
            yield "    value = value.encode()"
        if self._flexible:
            yield "    count = len(value) + 1"
            yield "    if count < 128: tail.append(count)"
            yield "    else: write_varint(output, count)"
        else:
            width = "16" if field.shape == "text" else "32"
            yield f"    tail += pack_int{width}(len(value))"
        if field.shape == "text":
            yield "    tail += value"
            return
        if field.shape == "array":
            assert field.item is not None
            yield "    if len(value) > 1: output.spend_elements(len(value))"
            yield f"    for item in value: {self._name(field.item[1], 'write')}(output, item)"
        else:
            yield "    output.append_data(value)"
        yield "    tail = output.tail"

    def _builder_lines(self) -> Iterator[str]:
        given = "".join(
            f"{field.name}={self._name(field.default, 'default')}, " for field in self._all
        )
        yield f"def build(*, {given}**unknown):" if given else "def build(**unknown):"
        yield "    if unknown: drop(unknown)"
        yield "    message = new(cls)"
        for field in self._all:
            yield f"    message.{field.name} = {field.name}"
        yield "    return message"
        yield "return build"


def read_tags(
    buffer: Buffer, position: int, tagged: dict[int, Field], values: dict[str, Any]
) -> int:
    """The tagged fields after an entity (KIP-482); unknown tags are ignored. Raises
    LongMessageError, and what readers raise.
    """
    count, position = primitives.read_varint(buffer, position)
    spend_tags(count)
    for _ in range(count):
        tag, position = primitives.read_varint(buffer, position)
        size, position = primitives.read_varint(buffer, position)
        content, position = primitives.take(buffer, position, size)
        if tag in tagged:
            values[tagged[tag].name], _ = tagged[tag].read(content, 0)
    return position


def write_tags(output: primitives.Output, value: Any, tagged: dict[int, Field]) -> None:
    """Write the tagged fields that do not hold their defaults."""
    present = []
    for tag in sorted(tagged):
        content = getattr(value, tagged[tag].name)
        if content != tagged[tag].default:
            present.append((tag, tagged[tag].write, content))
    primitives.write_varint(output, len(present))
    for tag, write, content in present:
        inner = primitives.Output(output.elements_left)
        write(inner, content)
        output.elements_left = inner.elements_left
        encoded = b"".join(inner.parts())
        primitives.write_varint(output, tag)
        primitives.write_varint(output, len(encoded))
        output.append_data(encoded)
