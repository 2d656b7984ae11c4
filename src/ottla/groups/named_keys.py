"""The keys of the records of newer groups: an int16 says which kind, strings follow, such as the
group and a member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from ottla.shards.encoding import Reader, Writer

K = TypeVar("K", bound=tuple[str, ...])


class NamedKeys(Generic[K]):
    """Of groups of one type."""

    def __init__(self, kinds: Mapping[int, type[K]]) -> None:
        """`kinds`: NamedTuples of strings."""
        self._types = kinds
        self._kinds = {key: kind for kind, key in kinds.items()}

    def encode(self, key: K) -> bytes:
        """The key's bytes."""
        writer = Writer()
        writer.int16(self._kinds[type(key)])
        for text in key:
            writer.string(text)
        return writer.content()

    def decode(self, content: bytes) -> K | None:
        """The key, or None for one of another kind; raises ValueError for bytes that are no key."""
        reader = Reader(content)
        made: Any = self._types.get(reader.int16())
        if made is None:
            return None
        key: K = made(*(reader.string() for _ in made._fields))
        return key
