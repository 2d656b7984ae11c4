"""Makes room among what is kept of clients, who may be ever new ones."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nsmallest
from typing import Protocol, TypeVar


class Used(Protocol):
    """What a client has used."""

    @property
    def used_ms(self) -> int:
        """When it was used last."""


K = TypeVar("K")
U = TypeVar("U", bound=Used)


def evict(kept: dict[K, U], maximum: int, is_like_new: Callable[[U], bool]) -> None:
    """Forgets those that lose nothing by it, and then those that have paused longest.

    At least a tenth of `maximum` is free afterwards, however few of them lost nothing: all are
    looked at, which must not happen for each new client.
    """
    for key in [key for key, each in kept.items() if is_like_new(each)]:
        del kept[key]
    excess = len(kept) - (maximum - maximum // 10)
    for key in nsmallest(max(excess, 0), kept, key=lambda key: kept[key].used_ms):
        del kept[key]
