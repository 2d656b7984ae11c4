"""Which partitions of a fetch have to be looked at: only those where something may be new.

A follower's session names thousands of partitions and most of them rest. So a partition that was
read to its end is left alone until it changes, over all the requests of the session; the work of a
request follows what happened and not what is named. (Kafka reads all partitions of a session at
each request, KIP-227.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from ottla.broker.waiting import Change, Watched, unwatch, watch

TopicKey: TypeAlias = UUID | str | None
"""A topic's id from Fetch 13 on (KIP-516), its name before; None is the zero id."""
Key: TypeAlias = tuple[TopicKey, int]

CONSUMER: Final = -1


class Fetched(Watched, Protocol):
    """A partition, as it is seen from here."""

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        """A follower fetched at `seen_ms` (monotonic) too, and had all there was."""


class FetchWatch:
    """Of one session, or of one request without a session. For the event loop's thread alone."""

    __slots__ = (
        "_closed", "_due", "_keys", "_partitions", "_sleepers", "_terms", "replica", "seen_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.replica = CONSUMER
        """The follower that fetches; it is told of records before they are committed."""
        self.seen_ms = 0
        """When the last request came, on the monotonic clock."""
        self._due: dict[Key, None] = {}
        self._keys: dict[Fetched, Key] = {}
        self._partitions: dict[Key, Fetched] = {}
        self._sleepers: dict[asyncio.Future[bool], None] = {}
        self._terms: object = None
        self._closed = False

    def __iter__(self) -> Iterator[Key]:
        """The partitions to look at now, who has waited longest first."""
        return iter(list(self._due))

    def asked(self, keys: Iterable[Key]) -> None:
        """The client asks anew: whatever is there is to be looked at."""
        self._due.update(dict.fromkeys(keys))

    def begin(self, terms: object, every: Iterable[Key], replica: int, now_ms: int) -> None:
        """A request of the client. Under other `terms` than the last one everything is due."""
        if terms != self._terms:
            self.asked(every)
        self._terms, self.replica, self.seen_ms = terms, replica, now_ms

    def rests(self, key: Key) -> None:
        """Nothing more is to be had of it until it changes; it has to be watched."""
        self._due.pop(key, None)

    def served(self, key: Key) -> None:
        """The others have their turn first."""
        if key in self._due:
            del self._due[key]
            self._due[key] = None

    def watch(self, key: Key, partition: Fetched) -> None:
        """Has each change of the partition make it due."""
        if not self._closed and self._keys.get(partition) != key:
            self._keys[partition] = key
            self._partitions[key] = partition
            watch(partition, self)

    def forget(self, keys: Iterable[Key]) -> None:
        """The client wants these no more."""
        for key in keys:
            if key in self._partitions:
                self._leave(self._partitions[key])
            self._due.pop(key, None)

    def close(self) -> None:
        """Watches nothing more; who sleeps is woken."""
        self._closed = True
        for partition in list(self._keys):
            self._leave(partition)
        self._rouse()

    def changed(self, partition: Fetched, change: Change) -> None:
        """See `waiting.Watcher`."""
        is_replica = self.replica != CONSUMER
        if change is Change.APPENDED and not is_replica:
            return
        key = self._keys[partition]
        if key not in self._due:
            self._idle(partition)
            self._due[key] = None
        if change is Change.GONE:
            self._lose(partition)
        if change is not Change.COMMITTED or not is_replica:
            self._rouse()

    async def wait(self, max_ms: int) -> None:
        """Until something watched changes, or `max_ms` went by."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._sleepers[future] = None
        handle = loop.call_later(max_ms / 1000, _end, future)
        try:
            await future
        finally:
            handle.cancel()
            self._sleepers.pop(future, None)

    def _rouse(self) -> None:
        for future in self._sleepers:
            _end(future)

    def _leave(self, partition: Fetched) -> None:
        if self._keys[partition] not in self._due:
            self._idle(partition)
        self._lose(partition)
        unwatch(partition, self)

    def _lose(self, partition: Fetched) -> None:
        key = self._keys.pop(partition)
        if self._partitions[key] is partition:
            del self._partitions[key]

    def _idle(self, partition: Fetched) -> None:
        if self.replica != CONSUMER:
            partition.was_idle(self.replica, self.seen_ms)


def _end(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(True)
