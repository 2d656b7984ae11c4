"""The messages of a Protobuf schema: classes made from its descriptors, and which one is read.

Each schema has a pool of its own: two schemas may define a message of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.registry.protobuf_files import MAX_SHOWN, descriptor_set
from ottla.registry.registered import Registered, SchemaError


class Messages:
    """The messages that a schema's own file defines; `files` is its FileDescriptorSet."""

    def __init__(self, schema: Registered) -> None:
        """Raises SchemaError for a schema that cannot be used."""
        self.schema = schema
        self.files = descriptor_set(schema)
        self.pool, file = pool_of(self.files, schema.shown)
        self.by_index: dict[tuple[int, ...], Any] = dict(_indexed(file))
        """Descriptors by their indexes in Confluent's framing."""
        self.by_name: dict[str, Any] = {one.full_name: one for one in self.by_index.values()}
        if not self.by_index:
            raise SchemaError(f"{schema.shown} defines no message")

    def indexes_of(self, name: str) -> tuple[int, ...]:
        """Return where a message is in the file. `name` must be in `by_name`."""
        return next(at for at, one in self.by_index.items() if one.full_name == name)

    def roots(self) -> list[str]:
        """Return the messages at the file's top that no other message of it has as a field."""
        used = {
            field.message_type.full_name
            for one in self.by_index.values()
            for field in one.fields
            if field.message_type is not None and not _inside(field.message_type, one)
        }
        tops = [one.full_name for at, one in self.by_index.items() if len(at) == 1]
        return [name for name in tops if name not in used] or tops

    def main(self) -> str | None:
        """Return the message that the schema is about, None where it has several."""
        roots = self.roots()
        return roots[0] if len(roots) == 1 else None


def pool_of(files: bytes, shown: str) -> tuple[Any, Any]:
    """Return a pool with the files of a FileDescriptorSet, and the last of them.

    Raises SchemaError for files that do not fit each other.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    found = FileDescriptorSet.FromString(files).file
    try:
        for one in found:
            pool.AddSerializedFile(one.SerializeToString())
        return pool, pool.FindFileByName(found[-1].name)
    except (TypeError, KeyError) as error:
        words = " ".join(str(error).split())[:MAX_SHOWN].rstrip(".")
        raise SchemaError(f"{shown} is no Protobuf schema: {words}") from error


def is_repeated(field: Any) -> bool:
    """Tell whether a field is repeated. Protobuf 7 has no `label`, versions before 6 only that."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def is_map(field: Any) -> bool:
    """Tell whether a field is a map."""
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def _inside(inner: Any, outer: Any) -> bool:
    """Tell whether one message is the other one, or is defined in it."""
    at = inner
    while at is not None and at.full_name != outer.full_name:
        at = at.containing_type
    return at is not None


def _indexed(file: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    for index, one in enumerate(file.message_types_by_name.values()):
        yield from _nested((index,), one)


def _nested(at: tuple[int, ...], one: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    if one.GetOptions().map_entry:
        return  # how a map is written; nobody has data of it
    yield at, one
    for index, inner in enumerate(one.nested_types):
        yield from _nested((*at, index), inner)
