"""Work on many elements in slices: other clients are answered in between.

A request may name 100,000 partitions. What a handler does for each takes microseconds, and for all
of them seconds, in which the event loop would answer nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

SLICE: Final = 500
"""At 5 to 20 us an element, 2 to 10 ms."""
MAX_ADDED_AT_ONCE: Final = 10_000
"""To a set, which takes a hundredth of that for each."""


class Slices:
    """Counts the elements of one request, in loops however nested."""

    __slots__ = ("_left", "_size")

    def __init__(self, size: int = SLICE) -> None:
        self._size = size
        self._left = size

    def has_room(self, elements: int) -> bool:
        """Counts the elements if the slice has room for them; `count` may pause for others."""
        if self._left < elements:
            return False
        self._left -= elements
        return True

    async def count(self, elements: int = 1) -> None:
        """Before each element, or before some of them: pauses when a slice is full. What the caller
        read before may have changed afterwards.
        """
        if self._left < elements:
            self._left = self._size
            await asyncio.sleep(0)
        self._left -= elements

    async def add_all(self, found: set[T], elements: Iterable[T]) -> None:
        """Adds the elements to the set; a hundred of them count as one."""
        for some in parts(elements, MAX_ADDED_AT_ONCE):
            await self.count(1 + len(some) // 100)
            found.update(some)


def parts(elements: Iterable[T], size: int = SLICE) -> Iterable[list[T]]:
    """The elements, `size` at a time."""
    if isinstance(elements, tuple) and 0 < len(elements) <= size:
        return (list(elements),)  # most requests
    return _parts(elements, size)


def _parts(elements: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(elements)
    while part := list(islice(rest, size)):
        yield part


async def in_turns(steps: Generator[None, None, T]) -> T:
    """What the steps return, each made in a turn of the event loop of its own."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


def until_done(step: Callable[[], bool]) -> None:
    """Call `step` until it returns False, once in each turn of the event loop. Nothing can cancel
    it: for what must be done whether or not its client is still there.
    """
    if step():
        asyncio.get_running_loop().call_soon(until_done, step)
