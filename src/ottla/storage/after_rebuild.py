"""Tries again what has found an index that is being built again: see `log.index_rebuild`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ottla.log.errors import RebuildingError
from ottla.log.task import Rebuild
from ottla.runtime.waiting import Waiter

T = TypeVar("T")

MAX_REBUILDS: Final = 5
"""One call waits for: the indexes of two segments, and again because compaction replaced them."""
MAX_WAIT_MS: Final = 60_000


async def over(rebuild: Rebuild) -> None:
    """Returns when the rebuild is over, whether or not it has helped."""
    if not rebuild.is_over:
        await Waiter((rebuild,)).wait(MAX_WAIT_MS)


async def after_rebuild(look: Callable[[], Awaitable[T]]) -> T:
    """The result of `look`, which is called again after each rebuild that it has met; raises its
    errors.
    """
    for _ in range(MAX_REBUILDS):
        try:
            return await look()
        except RebuildingError as error:
            await over(error.rebuild)
    return await look()
