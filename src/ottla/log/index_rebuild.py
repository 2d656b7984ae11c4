"""Builds the indexes of a large segment again, off the event loop.

The headers of 1 GB take 1.7 s to read, and a look-up on the event loop finds the damage. So it
raises `RebuildingError`, and the caller tries again when the rebuild is over. Until then nothing is
appended to the segment or cut from it, so that what the thread has read stays true; other look-ups
use what they can. If the segment leaves the log meanwhile, what was built is thrown away. A segment
has one rebuild at a time, however many readers wait for it.

    <first offset>.<index>.<number>.rebuilt    what the thread writes, then renamed to the index

Crash: the old index or the new one, and possibly such a file, which the next start removes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, Protocol

from ottla.log import names
from ottla.log.errors import damaged_error, storage_error
from ottla.log.task import Rebuild
from ottla.protocol.errors import ApiError
from ottla.records.errors import CorruptBatchError
from ottla.runtime.waiting import Change, Watcher, wake

logger = logging.getLogger("ottla.recovery")

MAX_AT_ONCE_BYTES: Final = 1 << 20
"""Segments of up to so many bytes are indexed at once: at most 17,000 batches, 30 ms."""

_numbers: Final = count(1)


class Rebuilt(Protocol):
    """The segment."""

    rebuild: Rebuild | None
    """The one that is under way."""

    def end_rebuild(self, failure: ApiError | None, *, is_damaged: bool) -> None:
        """It is over. The failure is that of the next look-up that needs the index; `is_damaged`:
        the batches are, so that another rebuild would be no use.
        """


class IndexRebuild:
    """One such rebuild. Create it on the event loop's thread, which calls `end` in any case."""

    def __init__(
        self,
        segment: Rebuilt,
        path: str,
        why: Exception,
        *,
        build: Callable[[Callable[[], bool]], None],
        take: Callable[[], None],
        scratch_paths: Sequence[str],
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """`build` writes the scratch files, in a thread, and ends soon when what it is given
        returns True; `take` gives them to the segment. Both raise ApiError KAFKA_STORAGE_ERROR.
        `is_current`: what was read is still in the log.
        """
        self.waiters: dict[Watcher, None] | None = None
        self.is_over = False
        self._segment = segment
        self._path = path
        self._why = why
        self._build = build
        self._take = take
        self._scratch_paths = scratch_paths
        self._is_current = is_current
        self._is_built = False
        self._is_damaged = False
        self._failure: ApiError | None = None

    @property
    def is_stale(self) -> bool:
        """The segment has left the log, or the log is closed. Any thread may ask."""
        return self._segment.rebuild is not self

    def run(self) -> None:
        """Read the batches and write the new files."""
        try:
            if not self.is_stale:
                self._build(lambda: self.is_stale)
                self._is_built = True
        except FileNotFoundError:
            pass  # retention or compaction came first
        except CorruptBatchError as error:
            self._is_damaged = True
            self._failure = damaged_error(self._path, error)
        except OSError as error:
            self._failure = storage_error(f"cannot read {self._path}", error)
        except ApiError as error:
            self._failure = error
        if self.is_stale:
            self._remove()

    def apply(self) -> None:
        """Take the new files; not if the segment has left the log."""
        if self.is_stale:
            return
        if not self._is_current():
            self._failure = None
        elif self._is_built:
            try:
                self._take()
            except ApiError as error:
                self._failure = error
            else:
                logger.warning("the indexes of %s are built again: %s", self._path, self._why)

    def end(self) -> None:
        """The calls that wait try again."""
        self.is_over = True
        if not self.is_stale:
            self._segment.end_rebuild(self._failure, is_damaged=self._is_damaged)
        self._remove()
        wake(self, Change.GONE)

    def _remove(self) -> None:
        for path in self._scratch_paths:
            with suppress(OSError):  # the next start removes it
                os.unlink(path)


def scratch_suffix() -> str:
    """Of the files of one rebuild. An earlier one of another segment with this base offset may
    still write.
    """
    return f".{next(_numbers)}{names.REBUILT}"
