"""What the bytes of the records of newer groups have in common: consumer, share and streams groups.

key    int16, which says its kind; strings, such as the group and a member
value  int16 version, always 0; what a value of its kind has
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ottla.shards.encoding import Reader, Writer

K = TypeVar("K", bound=tuple[str, ...])
V = TypeVar("V")
R = TypeVar("R", bound=tuple[Any, Any])


class NewerRecords(Generic[K, V, R]):
    """Of groups of one type."""

    def __init__(
        self,
        kinds: Mapping[int, type[K]],
        record: Callable[[K, V | None], R],
        write: Callable[[Writer, V], None],
        read: Callable[[K, Reader], V],
    ) -> None:
        """`kinds`: NamedTuples of strings. `record` has a key and a value. `write` and `read`: what
        follows on a value's version.
        """
        self._types = kinds
        self._kinds = {key: kind for kind, key in kinds.items()}
        self._record = record
        self._write = write
        self._read = read

    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """The record's key and value."""
        key, value = record
        return self.encode_key(key), self.encode_value(value)

    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """The record, or None for a key of a kind that groups of this type do not have.

        Raises ValueError for bytes that are no such record.
        """
        decoded = self.decode_key(key)
        return None if decoded is None else self._record(decoded, self.decode_value(decoded, value))

    def encode_key(self, key: K) -> bytes:
        """The key's bytes."""
        writer = Writer()
        writer.int16(self._kinds[type(key)])
        for text in key:
            writer.string(text)
        return writer.content()

    def decode_key(self, content: bytes) -> K | None:
        """The key, or None for one of another kind; raises ValueError for bytes that are no key."""
        reader = Reader(content)
        made: Any = self._types.get(reader.int16())
        if made is None:
            return None
        key: K = made(*(reader.string() for _ in made._fields))
        return key

    def encode_value(self, value: V | None) -> bytes | None:
        """The value's bytes; None for a tombstone."""
        if value is None:
            return None
        writer = Writer()
        writer.int16(0)
        self._write(writer, value)
        return writer.content()

    def decode_value(self, key: K, content: bytes | None) -> V | None:
        """The value that belongs to such a key; raises ValueError where the bytes are none."""
        if content is None:
            return None
        reader = Reader(content)
        version = reader.int16()
        if version != 0:
            raise ValueError(f"version {version} of the value of {type(key).__name__}")
        return self._read(key, reader)
