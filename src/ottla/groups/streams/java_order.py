"""The order in which Java's collections have things: it decides in Kafka's assignor which of two
equally loaded processes or members gets a task, so it does here.

A HashMap has its keys by bin: the last bits of the hash of the string, as many as its table is
large. Within a bin `put` adds a key behind the others, `computeIfAbsent` before them. A
PriorityQueue is a heap, whose equal items have no other order than the heap's own.

Left out: two members whose ids lie in one bin. They have the order in which Kafka's table of the
group's members has them, which depends on all members that it ever had; here they are sorted. A bin
of eight keys, which Java makes a tree. What is behind the first 64 characters of an id: those of
Kafka Streams are shorter, and longer ones would hold the event loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import mul
from typing import Final, Generic, TypeVar

MAX_HASHED: Final = 64
"""Characters of an id."""
_FIRST_TABLE: Final = 16
_POWERS: Final = tuple(pow(31, at, 1 << 32) for at in range(2 * MAX_HASHED))
"""Of 31, one for each unit: a character has two at most."""
_T = TypeVar("_T")


def _hash(key: str) -> int:
    """String.hashCode, of the characters in UTF-16, as HashMap spreads it."""
    units: bytes | memoryview = key[:MAX_HASHED].encode("utf-16-le", "surrogatepass")
    units = units[::2] if key.isascii() else memoryview(units).cast("H")
    code: int = sum(map(mul, reversed(units), _POWERS)) & 0xFFFFFFFF
    return code ^ code >> 16


def _by_bin(keys: Iterable[str], table: int) -> list[str]:
    return sorted(keys, key=lambda key: _hash(key) & table - 1)


def order_of_puts(keys: Collection[str]) -> list[str]:
    """Different keys, put one after the other into a HashMap of the usual size."""
    table = _FIRST_TABLE
    while len(keys) > table * 3 // 4:
        table *= 2
    return _by_bin(keys, table)


def order_of_computed(keys: Collection[str], capacity: int) -> list[str]:
    """Keys, some of them several times, for which a HashMap of that capacity was asked by
    `computeIfAbsent`. Unlike `put`, that looks whether the table is full before it adds.
    """
    table = 1
    while table < capacity:
        table *= 2
    added: dict[str, None] = {}
    for key in keys:
        if len(added) > table * 3 // 4:
            table *= 2
        added[key] = None
    return _by_bin(reversed(added), table)


class JavaQueue(Generic[_T]):
    """PriorityQueue: items by their load."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[float, _T]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, load: float, item: _T) -> None:
        heap, new = self._heap, (load, item)
        heap.append(new)
        at = len(heap) - 1
        while at > 0:
            parent = (at - 1) // 2
            if load >= heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = new

    def take(self) -> _T:
        """The item with the least load; there is one."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sink(last)
        return first[1]

    def _sink(self, item: tuple[float, _T]) -> None:
        heap, load = self._heap, item[0]
        size = len(heap)
        at = 0
        while at < size // 2:
            child = 2 * at + 1
            if child + 1 < size and heap[child][0] > heap[child + 1][0]:
                child += 1
            if load <= heap[child][0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = item
