"""The newest documents of the groups of one partition of `__consumer_offsets`, as lines of JSON.

Limits: `MAX_OF_GROUP` of each group, and `MAX_BYTES` of all: of those, groups that have the most
lose their oldest ones first. So a group that rebalances all the time pushes out its own history and
no other's.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Final

from ottla.groups.history.fold import Document

MAX_OF_GROUP: Final = 50
MAX_BYTES: Final = 256 << 10
"""300 rebalances and more."""
MAX_LINE_BYTES: Final = 32 << 10
"""Causes and moves have limits, so that a line has some 20 KB at most."""
_LEFT: Final = MAX_BYTES * 3 // 4


class Kept:
    """For one thread at a time."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """Those that were kept before, oldest first. Raises ValueError for what is no document."""
        self._of_group: dict[str, deque[tuple[int, bytes]]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._next = 0
        for line in lines:
            document = json.loads(line)
            if not isinstance(document, dict):
                raise ValueError("a line is not a document")
            number, group = document.get("number"), document.get("group")
            if not isinstance(number, int) or not isinstance(group, str):
                raise ValueError("a document has no number or no group")
            self._put(group, number, line)

    def add(self, document: Document) -> bytes:
        """The line that is kept: the document with its `number`, which grows."""
        line = json.dumps(document | {"number": self._next}, separators=(",", ":")).encode()
        if len(line) > MAX_LINE_BYTES:
            short = document | {"number": self._next, "causes": [], "moves": []}
            line = json.dumps(short | {"is_complete": False}, separators=(",", ":")).encode()
        self._put(document["group"], self._next, line)
        return line

    def _put(self, group: str, number: int, line: bytes) -> None:
        self._next = max(self._next, number + 1)
        its = self._of_group.setdefault(group, deque())
        its.append((number, line))
        self._count(group, len(line))
        if len(its) > MAX_OF_GROUP:
            self._drop_oldest(group)
        if self._total > MAX_BYTES:
            self._shrink_largest()

    def _count(self, group: str, size: int) -> None:
        self._bytes[group] = self._bytes.get(group, 0) + size
        self._total += size

    def _drop_oldest(self, group: str) -> None:
        _, line = self._of_group[group].popleft()
        self._count(group, -len(line))
        if not self._of_group[group]:
            del self._of_group[group], self._bytes[group]

    def _shrink_largest(self) -> None:
        """Halves the largest, until a quarter is free."""
        while self._total > _LEFT:
            largest = max(self._bytes, key=self._bytes.__getitem__)
            for _ in range((len(self._of_group[largest]) + 1) // 2):
                self._drop_oldest(largest)

    def of(self, group: str) -> list[Document]:
        """Oldest first."""
        return [json.loads(line) for _, line in self._of_group.get(group, ())]

    def lines(self) -> list[bytes]:
        """Of all groups, oldest first."""
        every = (each for its in self._of_group.values() for each in its)
        return [line for _, line in sorted(every)]
