"""Keeps the timelines of this broker's partitions: takes their steps and writes them, off the loop.

A partition's calls only note things in memory (see `journey/timeline.py`). Every `FLUSH_MS` this
driver takes the steps of those partitions that have any and has its one thread append them to the
files. One thread, so that a journey which is asked for never reads half of what is being written:
it first writes, then reads, in the same queue.

Limits: a flush's own time is followed by fifty times as much pause (five seconds at most), so that
thousands of busy partitions do not take the processor from the requests; then steps become coarser
(see `timeline.py`), and what a crash may take is some seconds and not half of one. A disk that
refuses costs the steps, a line in the log when it begins, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

from ottla.broker.background import Background
from ottla.broker.clock import Clock
from ottla.journey.folder import TimelineFolder
from ottla.journey.gathering import Gathering
from ottla.journey.lookup import Opening
from ottla.journey.no_timeline import NoTimeline
from ottla.journey.step import Step
from ottla.journey.timeline import PartitionTimeline, Timeline
from ottla.log.log import Log

logger = logging.getLogger("ottla.journey")

FLUSH_MS: Final = 500
PAUSE_PER_WORK: Final = 50
MAX_PAUSE_MS: Final = 5_000
MAX_TAKEN_AT_ONCE: Final = 256
"""Partitions whose steps are taken before other requests get their turn."""

NOTHING: Final = NoTimeline()


class Told(NamedTuple):
    """What the timelines know of one offset's partition."""

    steps: Sequence[Step]
    opening: Opening


class _Place:
    """Where a partition's timelines are written; the folder's state is made when first needed."""

    __slots__ = ("folder", "log")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.folder: TimelineFolder | None = None

    def opened(self) -> TimelineFolder:
        if self.folder is None:
            self.folder = TimelineFolder(Path(self.log.folder))
        return self.folder

    def bases(self) -> tuple[int, ...]:
        """The log's present segments: rolls, removals and compaction need not be told."""
        return tuple(segment.base_offset for segment in self.log.segments)


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple[TimelineFolder, list[Step], Sequence[int]]


class Journey:
    """All timelines of this broker. Not enabled: hands out `NoTimeline`s and writes nothing."""

    def __init__(self, clock: Clock, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.turn = asyncio.Lock()
        """Held while one journey is explained: each may read some hundred MiB."""
        self._clock = clock
        self._dirty: dict[Gathering, None] = {}
        self._places: dict[PartitionTimeline, _Place] = {}
        self._executor: ThreadPoolExecutor | None = None
        self._background = Background(logger, "writing the journey")
        self._failing = False

    def open(self, log: Log, *, high_watermark: int, after_crash: bool = False) -> Timeline:
        """The timeline of the partition that keeps this log, as the log was found.

        `after_crash`: the last stop was unclean, and the log may end before what was told of it.
        """
        if not self.enabled:
            return NOTHING
        timeline = PartitionTimeline(
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            high_watermark=high_watermark,
            now_ms=self._clock.now_ms(),
            dirty=self._dirty,
        )
        place = self._places[timeline] = _Place(log)
        if after_crash:
            write = place.opened().tell_cut
            self._guarded(write, timeline.opened_ms, log.end_offset, place.bases())
        return timeline

    def forget(self, timeline: Timeline) -> None:
        """The partition was deleted (or moved away): what it has not written yet is of no use."""
        if isinstance(timeline, PartitionTimeline):
            place = self._places.pop(timeline, None)
            self._dirty.pop(timeline, None)
            if place is not None and place.folder is not None:
                place.folder.is_gone = True

    def start(self) -> None:
        """Begin to flush. Needs the running loop."""
        if self.enabled:
            self._background.keep(self._run)

    async def close(self) -> None:
        """Write what is left and stop. Call it before the logs are closed."""
        await self._background.close()
        await self.flush(all_of_them=True)
        if self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None

    async def flush(self, *, all_of_them: bool = False) -> None:
        """Write the steps that are over (or all) of the partitions that have some."""
        waiting = [one for one in self._dirty if isinstance(one, PartitionTimeline)]
        for at in range(0, len(waiting), MAX_TAKEN_AT_ONCE):
            some = waiting[at : at + MAX_TAKEN_AT_ONCE]
            ready = [timeline for timeline in some if self._has_folder(timeline)]
            # What the others note next, with their first record, makes them dirty again.
            for timeline in set(some).difference(ready):
                del self._dirty[timeline]
            work = [self._taken(timeline, all_of_them=all_of_them) for timeline in ready]
            work = [taken for taken in work if taken[1]]
            if work:
                await self._in_thread(self._write, work)

    async def told(self, timeline: Timeline, offset: int) -> Told | None:
        """All that is known of what happened to `offset`; None when no journey is kept."""
        if not isinstance(timeline, PartitionTimeline) or timeline not in self._places:
            return None
        opening = Opening(timeline.opened_ms, timeline.end_at_open, timeline.high_at_open)
        if not self._has_folder(timeline):
            return Told((), opening)
        work = self._taken(timeline, all_of_them=True)
        return Told(await self._in_thread(self._write_and_read, work, offset), opening)

    async def _run(self) -> None:
        pause_ms = FLUSH_MS
        while True:
            await asyncio.sleep(pause_ms / 1000)
            started_ms = self._clock.monotonic_ms()
            await self.flush()
            took_ms = self._clock.monotonic_ms() - started_ms
            pause_ms = max(FLUSH_MS, min(PAUSE_PER_WORK * took_ms, MAX_PAUSE_MS))

    def _has_folder(self, timeline: PartitionTimeline) -> bool:
        place = self._places.get(timeline)
        return place is not None and place.log.is_on_disk

    def _taken(self, timeline: PartitionTimeline, *, all_of_them: bool) -> _Work:
        place = self._places[timeline]
        steps = timeline.take(self._clock.now_ms(), all_of_them=all_of_them)
        return place.opened(), steps, place.bases() if steps else ()

    async def _in_thread(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journey")
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, lambda: work(*args, **kwargs)
        )

    def _write(self, work: Sequence[_Work]) -> None:
        for folder, steps, bases in work:
            self._guarded(folder.write, steps, bases)

    def _write_and_read(self, work: _Work, offset: int) -> list[Step]:
        self._write([work])
        try:
            return work[0].read(offset)
        except OSError as error:
            logger.error("cannot read timelines: %s", error)
            return []

    def _guarded(self, write: Callable[_P, None], *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            write(*args, **kwargs)
            self._failing = False
        except OSError as error:
            if not self._failing:
                self._failing = True
                logger.error("cannot write timelines (%s): what happens now is not kept", error)
