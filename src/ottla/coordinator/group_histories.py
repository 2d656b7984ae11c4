"""Keeps the history of the groups of this broker: takes what deciders note, in memory and in files.

The event loop only puts events into a queue. A thread of its own folds them into documents
(`groups.history.fold`) and writes these beside the log of the partition of `__consumer_offsets`
that has the group (`history_file`). Questions wait for what is in the queue.

Limits: `MAX_WAITING` events, which refer to `MAX_WAITING_BYTES` in all; of more only the number is
kept, and logged. Between two writes the
thread pauses `PAUSE_PER_WORK` times as long as the last one took. If the disk refuses to write, the
history stays in memory; a file that cannot be read is left alone. The first failure is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from ottla.coordinator.history_file import HistoryFile
from ottla.groups.history.events import Event, Loaded, size_of
from ottla.groups.history.fold import Document, Histories
from ottla.groups.history.moves import NameOf
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.groups")

T = TypeVar("T")
_Home: TypeAlias = tuple[int, Path | None]
"""A partition of `__consumer_offsets`, and its folder."""

WRITE_AFTER_S: Final = 0.25
PAUSE_PER_WORK: Final = 20
MAX_PAUSE_S: Final = 5.0
MAX_WAITING: Final = 20_000
MAX_WAITING_BYTES: Final = 32 << 20
"""About. A classic group may complete a generation with a megabyte hundreds of times a second."""
MAX_AT_ONCE: Final = 2_000


class GroupHistories:
    """For the event loop's thread only."""

    def __init__(
        self,
        clock: Clock,
        partition_of: Callable[[str], int | None],
        folder_of: Callable[[int], Path | None],
        name_of: NameOf,
    ) -> None:
        """The partition of `__consumer_offsets` that has a group, if the topic exists; the folder
        of such a partition, if this broker has it on disk; the name of a topic. The last is called
        in the thread.
        """
        self._clock = clock
        self._partition_of = partition_of
        self._folder_of = folder_of
        self._queue: deque[tuple[Event | Loaded, int]] = deque()
        """Each with the bytes that it refers to."""
        self._waiting_bytes = 0
        self._dropped = 0
        self._writing = _Writing(name_of)
        self._executor: ThreadPoolExecutor | None = None
        self._background = Background(logger, "history of groups")
        self._is_running = False
        self._is_closed = False

    def note(self, event: Event | Loaded) -> None:
        """Something happened, and is committed."""
        size = size_of(event)
        if len(self._queue) >= MAX_WAITING or self._waiting_bytes + size > MAX_WAITING_BYTES:
            if not self._dropped:
                logger.warning("groups rebalance too often: some of it is not in their history")
            self._dropped += 1
            return
        self._queue.append((event, size))
        self._waiting_bytes += size
        if not self._is_running and not self._is_closed:
            self._is_running = True
            self._background.spawn(self._run())

    async def _run(self) -> None:
        pause_s = WRITE_AFTER_S
        try:
            while self._queue:
                await asyncio.sleep(pause_s)
                started_ms = self._clock.monotonic_ms()
                await self._write_some()
                took_ms = self._clock.monotonic_ms() - started_ms
                pause_s = max(WRITE_AFTER_S, min(PAUSE_PER_WORK * took_ms / 1000, MAX_PAUSE_S))
            if self._dropped:
                logger.warning("%d events are not in the history of groups", self._dropped)
                self._dropped = 0
        finally:
            self._is_running = False

    async def _write_some(self) -> None:
        some = [self._queue.popleft() for _ in range(min(MAX_AT_ONCE, len(self._queue)))]
        self._waiting_bytes -= sum(size for _, size in some)
        events = [event for event, _ in some]
        homes = self._homes(events)
        await self._in_thread(lambda: self._writing.write(events, homes))

    def _homes(self, events: Sequence[Event | Loaded]) -> dict[str, _Home]:
        """Where the groups of these events belong."""
        names: set[str] = set()
        for event in events:
            names.update(event.groups if isinstance(event, Loaded) else (event.group,))
        return {name: home for name in names if (home := self._home(name)) is not None}

    def _home(self, group: str) -> _Home | None:
        index = self._partition_of(group)
        return None if index is None else (index, self._folder_of(index))

    async def of(self, group: str, *, is_coordinator: bool) -> list[Document]:
        """What is known here of a group, oldest first; last the rebalance that is under way.
        `is_coordinator`: whether this broker is still the group's.
        """
        if not is_coordinator:
            self.note(Loaded((group,), self._clock.now_ms()))
        for _ in range(1 + MAX_WAITING // MAX_AT_ONCE):
            if not self._queue:
                break
            await self._write_some()
        home = self._home(group)
        if home is None:
            return []
        return await self._in_thread(lambda: self._writing.read(group, home))

    async def close(self) -> None:
        """Writes the rest. Call it before the logs are closed."""
        self._is_closed = True
        await self._background.close()
        while self._queue:
            await self._write_some()
        if self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="group-history")
        # Also if nobody waits any more: the events are not in the queue now.
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._executor, work))


class _Writing:
    """What the thread does."""

    def __init__(self, name_of: NameOf) -> None:
        self._histories = Histories(name_of)
        self._files: dict[int, HistoryFile] = {}
        self._is_failing = False

    def write(self, events: Sequence[Event | Loaded], homes: dict[str, _Home]) -> None:
        ended: dict[int, list[Document]] = {}
        folders: dict[int, Path | None] = {}
        for event in events:
            for document in self._histories.fold(event):
                home = homes.get(document["group"])
                if home is not None:
                    ended.setdefault(home[0], []).append(document)
                    folders[home[0]] = home[1]
        for index, documents in ended.items():
            self._write(index, folders[index], documents)

    def _write(self, index: int, folder: Path | None, documents: Sequence[Document]) -> None:
        if folder is None:
            return
        try:
            file = self._file(index, folder)
        except OSError as error:
            self._failed("cannot read the history of groups (%s): nothing is added to it", error)
            return
        try:
            file.write(documents)
            self._is_failing = False
        except OSError as error:
            self._failed("cannot write the history of groups (%s): it is in memory only", error)

    def _failed(self, text: str, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            logger.error(text, error)

    def _file(self, index: int, folder: Path) -> HistoryFile:
        file = self._files.get(index)
        if file is None:
            file = self._files[index] = HistoryFile(folder)
        elif file.folder != folder:
            file.moved_to(folder)
        return file

    def read(self, group: str, home: _Home) -> list[Document]:
        index, folder = home
        found: list[Document] = []
        if folder is not None:
            try:
                found = self._file(index, folder).kept.of(group)
            except OSError as error:
                logger.error("cannot read the history of groups: %s", error)
        under_way = self._histories.under_way(group)
        return found if under_way is None else [*found, under_way | {"number": None}]
