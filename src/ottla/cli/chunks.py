"""Long lists in parts that one request can carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_chunks(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The items in order, `most` at a time."""
    return (items[first : first + most] for first in range(0, len(items), most))
