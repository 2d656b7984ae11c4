"""Keeps the timelines of this broker's partitions: takes their steps and writes them to files.

A partition records steps in memory (see `timelines/partition_timeline.py`). Every `FLUSH_MS` this
driver takes the steps of all partitions that have some, and appends them to the files in its one
thread. Journey requests write and then read in the same thread, so that none reads a half-written
block.

Limits: after each flush the driver pauses fifty times as long as the flush took, at most five
seconds, so that thousands of busy partitions leave the processor to requests. Under such load steps
become coarser, and a crash loses some seconds of them instead of half a second. If the disk refuses
a write, the steps are lost and the first failure is logged.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

from ottla.log.log import Log
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.runtime.one_at_a_time import OneAtATime
from ottla.timelines.folder import (
    GroupFolder,
    TimelineFolder,
    groups_path,
    groups_paths,
    topic_of_groups,
)
from ottla.timelines.group_timeline import GroupsTimeline, GroupTimeline
from ottla.timelines.no_timeline import NoTimeline
from ottla.timelines.partition_timeline import PartitionTimeline, Timeline
from ottla.timelines.pending_steps import Gathering
from ottla.timelines.step import Opening, Step

logger = logging.getLogger("ottla.journey")

FLUSH_MS: Final = 500
PAUSE_PER_WORK: Final = 50
MAX_PAUSE_MS: Final = 5_000
MAX_TAKEN_AT_ONCE: Final = 256
"""Partitions whose steps are taken before other requests can run."""

MAX_GROUP_TIMELINES: Final = 2_000
"""Partitions of which this broker has no replica, with commits that are not written yet. Those of
others are not recorded; a journey then knows the time of the last commit.
"""
GROUPS_CAP_BYTES: Final = 128 * 1024
"""About 5,000 steps; then the older ones are merged."""

NOTHING: Final = NoTimeline()
_Home: TypeAlias = tuple[str, UUID, int]
"""Where the groups' steps of a partition are kept: the arguments of `groups_path`."""


class OffsetHistory(NamedTuple):
    """What the timelines contain about one offset's partition."""

    steps: Sequence[Step]
    opening: Opening


class _GroupFiles:
    """Where the groups' steps of a partition are written of which this broker has no replica."""

    __slots__ = ("folder", "log")

    def __init__(self, log: Log, folder: GroupFolder) -> None:
        self.log = log
        self.folder = folder

    def opened(self) -> TimelineFolder:
        return self.folder

    def bases(self) -> tuple[int, ...]:
        return (0,)


class _PartitionFiles:
    """Where a partition's timelines are written. The folder's state is created when first
    needed.
    """

    __slots__ = ("folder", "log")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.folder: TimelineFolder | None = None

    def opened(self) -> TimelineFolder:
        if self.folder is None:
            self.folder = TimelineFolder(Path(self.log.folder))
        return self.folder

    def bases(self) -> tuple[int, ...]:
        """The base offsets of the log's current segments, so that nobody has to report rolls and
        removals.
        """
        return tuple(segment.base_offset for segment in self.log.segments)


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple[TimelineFolder, list[Step], Sequence[int]]


class TimelineRecorder:
    """All timelines of this broker. If disabled, it returns `NoTimeline`s and writes nothing."""

    def __init__(self, clock: Clock, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.explaining = OneAtATime()
        """One journey is explained at a time: each may read a few hundred MiB."""
        self._clock = clock
        self._dirty: dict[Gathering, None] = {}
        self._files: dict[GroupTimeline, _PartitionFiles | _GroupFiles] = {}
        self._of_groups: dict[_Home, GroupTimeline] = {}
        """Without those that have nothing to write."""
        self._group_folders: dict[Path, GroupFolder] = {}
        self._executor: ThreadPoolExecutor | None = None
        self._background = Background(logger, "writing the journey")
        self._failing = False

    def open(
        self, log: Log, *, high_watermark: int, now_ms: int, after_crash: bool = False
    ) -> Timeline:
        """The timeline of the partition with this log, in its state at `now_ms`: not later than the
        first event.

        `after_crash`: the last shutdown was unclean, and the log may end before the recorded end.
        """
        if not self.enabled:
            return NOTHING
        timeline = PartitionTimeline(
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
            dirty=self._dirty,
        )
        files = self._files[timeline] = _PartitionFiles(log)
        if after_crash:
            write = files.opened().record_truncation
            self._guarded(write, timeline.opened_ms, log.end_offset, files.bases())
        return timeline

    def of_groups(self, log: Log, topic_id: UUID, partition: int) -> GroupsTimeline:
        """The groups' timeline of a partition of which this broker has no replica; `log` is that of
        the partition of `__consumer_offsets` that has the groups.
        """
        if not self.enabled:
            return NOTHING
        home = (log.folder, topic_id, partition)
        timeline = self._of_groups.get(home)
        if timeline is None:
            if len(self._of_groups) >= MAX_GROUP_TIMELINES:
                return NOTHING
            timeline = self._of_groups[home] = GroupTimeline(self._dirty)
            path = groups_path(*home)
            folder = self._group_folders.pop(path, None) or GroupFolder(
                path, cap_bytes=GROUPS_CAP_BYTES
            )
            self._group_folders[path] = folder
            self._files[timeline] = _GroupFiles(log, folder)
        return timeline

    async def history_of_groups(
        self, logs: Sequence[Log], topic_id: UUID, partition: int
    ) -> list[Step]:
        """All that was recorded so beside these logs."""
        if not self.enabled:
            return []
        homes = [(log.folder, topic_id, partition) for log in logs]
        known = [self._of_groups[home] for home in homes if home in self._of_groups]
        paths = [groups_path(*home) for home in homes]
        work = [self._taken(timeline, all_of_them=True) for timeline in known]
        return await self._in_thread(self._write_and_read_groups, work, paths)

    def _write_and_read_groups(self, work: Sequence[_Work], paths: Sequence[Path]) -> list[Step]:
        self._write(work)
        steps: list[Step] = []
        for path in paths:
            try:
                steps += GroupFolder(path).read(0)
            except OSError as error:
                logger.error("cannot read timelines: %s", error)
        return steps

    async def topics_of_groups(self, logs: Sequence[Log]) -> set[UUID]:
        """The topics about which something is recorded so beside these logs."""
        if not self.enabled:
            return set()
        folders = [Path(log.folder) for log in logs]
        return await self._in_thread(
            lambda: {topic_of_groups(path) for each in folders for path in groups_paths(each)}
        )

    async def remove_groups(self, logs: Sequence[Log], is_gone: Callable[[UUID], bool]) -> None:
        """Delete what was recorded so beside these logs about topics that are gone."""
        if not self.enabled:
            return
        for (_, topic_id, _), timeline in self._of_groups.items():
            if is_gone(topic_id):
                self._dirty.pop(timeline, None)
        self._forget_idle()
        for path in [path for path in self._group_folders if is_gone(topic_of_groups(path))]:
            del self._group_folders[path]
        await self._in_thread(self._remove_groups, [Path(log.folder) for log in logs], is_gone)

    def _remove_groups(self, folders: Sequence[Path], is_gone: Callable[[UUID], bool]) -> None:
        for folder in folders:
            for path in groups_paths(folder):
                if is_gone(topic_of_groups(path)):
                    self._guarded(shutil.rmtree, path)

    def _forget_idle(self) -> None:
        """Groups' timelines that have nothing to write: their coordinator knows what comes before
        the next step.
        """
        for home, timeline in list(self._of_groups.items()):
            if timeline not in self._dirty:
                del self._of_groups[home], self._files[timeline]
        while len(self._group_folders) > MAX_GROUP_TIMELINES:
            del self._group_folders[next(iter(self._group_folders))]

    def forget(self, timeline: Timeline) -> None:
        """The partition was deleted or moved away: what it has not written yet is not needed."""
        if isinstance(timeline, PartitionTimeline):
            files = self._files.pop(timeline, None)
            self._dirty.pop(timeline, None)
            if files is not None and files.folder is not None:
                files.folder.is_gone = True

    def start(self) -> None:
        """Begin to flush. Needs the running event loop."""
        if self.enabled:
            self._background.keep(self._run)

    async def close(self) -> None:
        """Write the rest and stop. Call it before the logs are closed."""
        await self._background.close()
        await self.flush(all_of_them=True)
        if self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None

    async def flush(self, *, all_of_them: bool = False) -> None:
        """Write the finished steps (or all) of the partitions that have some."""
        waiting = [one for one in self._dirty if isinstance(one, GroupTimeline)]
        for at in range(0, len(waiting), MAX_TAKEN_AT_ONCE):
            some = waiting[at : at + MAX_TAKEN_AT_ONCE]
            ready = [timeline for timeline in some if self._has_folder(timeline)]
            # The others become dirty again with their first record, or went since the last write.
            for timeline in set(some).difference(ready):
                self._dirty.pop(timeline, None)
            work = [self._taken(timeline, all_of_them=all_of_them) for timeline in ready]
            work = [taken for taken in work if taken[1]]
            if work:
                await self._in_thread(self._write, work)
        self._forget_idle()

    async def history(self, timeline: Timeline, offset: int) -> OffsetHistory | None:
        """What is known about what happened to `offset`; None if no timeline is kept."""
        if not isinstance(timeline, PartitionTimeline) or timeline not in self._files:
            return None
        opening = Opening(timeline.opened_ms, timeline.end_at_open, timeline.high_at_open)
        if not self._has_folder(timeline):
            return OffsetHistory((), opening)
        work = self._taken(timeline, all_of_them=True)
        return OffsetHistory(await self._in_thread(self._write_and_read, work, offset), opening)

    async def _run(self) -> None:
        pause_ms = FLUSH_MS
        while True:
            await asyncio.sleep(pause_ms / 1000)
            started_ms = self._clock.monotonic_ms()
            await self.flush()
            took_ms = self._clock.monotonic_ms() - started_ms
            pause_ms = max(FLUSH_MS, min(PAUSE_PER_WORK * took_ms, MAX_PAUSE_MS))

    def _has_folder(self, timeline: GroupTimeline) -> bool:
        files = self._files.get(timeline)
        return files is not None and files.log.is_on_disk

    def _taken(self, timeline: GroupTimeline, *, all_of_them: bool) -> _Work:
        files = self._files[timeline]
        steps = timeline.take(self._clock.now_ms(), all_of_them=all_of_them)
        return files.opened(), steps, files.bases() if steps else ()

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
                logger.error(
                    "cannot write timelines (%s): events are not recorded until it works again",
                    error,
                )
