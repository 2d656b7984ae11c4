"""Stops Python's cyclic garbage collector for a while, and lets it look only at what is new.

It looks at all objects each time their number has grown by a quarter. A start creates
dozens of objects for each partition, and keeps them: with 10,000 partitions the collector takes a
quarter of the start and finds nothing.

A request with 200,000 partitions creates two million objects. A full collection looks at all of
them without a pause: several times, each for 100 to 200 ms. After the request they are gone, and it
looks at what is left. Young objects are collected all the time: that is short.

A broker with 9,000 topics keeps a million objects, and a full collection takes 140 ms. Nearly all
of them stay, or are freed without the collector. So a full collection looks only at what is new
since the one before (`OldObjects`).
"""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection inside the block. Objects without cycles are freed as always.

    What the block leaves behind counts as old: the first collection after it does not look at it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Together: all objects move to the oldest generation.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


COMPLETE_EVERY_S: Final = 600
GROWTH: Final = 1.25
"""A complete collection comes when this many times the objects are kept: as Python's own rule."""


class OldObjects:
    """Keeps what has survived a full collection from the next ones.

    A cycle that is dropped afterwards stays in memory until the next complete collection. For a
    process of its own: the objects of all its parts are meant.
    """

    def __init__(self) -> None:
        self._kept = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Needs a running event loop."""
        gc.callbacks.append(_keep)
        gc.freeze()
        self._kept = gc.get_freeze_count()
        self._start_timer()

    def end(self) -> None:
        gc.callbacks.remove(_keep)
        gc.unfreeze()
        if self._timer is not None:
            self._timer.cancel()

    def complete_if_grown(self) -> bool:
        """Whether all objects were looked at."""
        if gc.get_freeze_count() < GROWTH * self._kept:
            return False
        gc.unfreeze()
        gc.collect()
        self._kept = gc.get_freeze_count()
        return True

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(COMPLETE_EVERY_S, self._time_is_up)

    def _time_is_up(self) -> None:
        self.complete_if_grown()
        self._start_timer()


def _keep(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


NEVER: Final = 2**31 - 1
MAX_POSTPONED_S: Final = 10
"""Then a full collection must run before the next ones are postponed."""


class FullCollections:
    """Of this process. For the event loop's thread only."""

    def __init__(self) -> None:
        self._postponing = 0
        self._threshold: tuple[int, int, int] | None = None
        """As it was, while they are postponed."""
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: int | None = None
        """This many have run; one more must."""

    def postpone(self) -> None:
        """None until `resume` was called as often, or MAX_POSTPONED_S have passed."""
        self._postponing += 1
        if self._threshold is None and self._awaited != _full_collections():
            self._awaited = None
            self._threshold = gc.get_threshold()
            gc.set_threshold(*self._threshold[:2], NEVER)
            self._timer = asyncio.get_running_loop().call_later(MAX_POSTPONED_S, self._time_is_up)

    def resume(self) -> None:
        self._postponing -= 1
        if not self._postponing:
            self._restore()

    def _time_is_up(self) -> None:
        self._awaited = _full_collections()
        self._restore()

    def _restore(self) -> None:
        if self._threshold is not None:
            gc.set_threshold(*self._threshold)
            self._threshold = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _full_collections() -> int:
    count: int = gc.get_stats()[2]["collections"]
    return count


FULL_COLLECTIONS: Final = FullCollections()
