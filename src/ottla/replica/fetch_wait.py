"""Which partitions a fetch has to read, and what makes a waiting fetch read again.

A follower's session names thousands of partitions, and most of them are idle. So a partition that
was read to its end is not read again until it changes, across all requests of the session: the work
of a request depends on what has changed, not on the number of partitions. (Kafka reads all
partitions of a session at each request, KIP-227.)

A partition of a session is in one of two states, across requests:

                  +-- was_read, and there is more --+
                  |   (served: behind the others)   |
                  v                                 |
    requested --> DUE ------------------------------+
                  | ^
    was_read,     | |  changed; requested again;
    to its end    v |  a request under other conditions
                 RESTING

    forget, end: leaves either state, and is no longer watched.
    gone (deleted or moved away): DUE, so that the error is sent, and no longer watched.

When a follower's partition leaves RESTING, the leader learns that this follower had all records
until the last request of its session (`was_idle`): its fetches in between were not recorded.

A request runs through these steps; `api/fetch.py` drives it:

    begin --> read what is due --> enough, or no time left --> answer
                   ^                        | neither
                   +------- woken <----- watch, sleep

A session may have 100,000 partitions. What grows with their number can be done in slices
(`beginning`, `end`); a change between two slices is noted as at any other time.

Pure: no clock and no event loop. A sleeping request passes a function to call at a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from ottla.replication.leader import FetchingReplica
from ottla.runtime.slices import SLICE, parts
from ottla.runtime.waiting import Change, Watched, unwatch, watch

TopicKey: TypeAlias = UUID | str | None
"""A topic's id from Fetch 13 on (KIP-516), its name before; None is the zero id."""
Key: TypeAlias = tuple[TopicKey, int]
Wake: TypeAlias = Callable[[], None]


class ReadConditions(NamedTuple):
    """How a request reads its partitions; other conditions find other records."""

    replica: FetchingReplica | None = None
    """The follower that fetches; None for a consumer. It may read uncommitted records."""
    committed_only: bool = False
    leader_only: bool = True
    rack: str = ""


NO_CONDITIONS: Final = ReadConditions()
_NOT_BEGUN: Final = ReadConditions(rack="\0")
"""No request has these: the first one reads everything."""
_FOR_REPLICAS: Final = (Change.APPENDED, Change.LEFT)
_CAN_WAIT: Final = (Change.COMMITTED, Change.LEFT)
"""A follower learns the high watermark from its next response, and joins with its next fetch."""


class Fetched(Watched, Protocol):
    """A partition, as this module needs it."""

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        """A follower that had all records fetched again at `seen_ms` (monotonic)."""


class FetchWait:
    """The state of one session, or of one request without a session. Not thread-safe."""

    __slots__ = (
        "_conditions", "_due", "_keys", "_partitions", "_sleepers", "_unwatched", "is_closed",
        "requested_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requested_ms = 0
        """When the last request arrived, on the monotonic clock."""
        self._conditions = _NOT_BEGUN
        self._due: dict[Key, None] = {}
        self._partitions: dict[Key, Fetched] = {}
        """The watched partitions."""
        self._keys: dict[Fetched, Key] = {}
        self._unwatched: list[tuple[Key, Fetched]] = []
        """Read, but not watched yet."""
        self._sleepers: dict[Wake, None] = {}
        self.is_closed = False
        """Nothing is watched any more: a request of it must not sleep."""

    def due(self) -> list[Key]:
        """The partitions to read now, in order."""
        return list(self._due)

    def requested(self, keys: Iterable[Key]) -> None:
        """The client names these partitions, perhaps with new offsets."""
        for key in keys:
            self._due[key] = None

    def begin(self, conditions: ReadConditions, every: Iterable[Key], now_ms: int) -> None:
        """A request starts; the client has named `every` partition in this session."""
        if conditions != self._conditions:
            self.requested(every)
            self._conditions = conditions
        self.requested_ms = now_ms

    def beginning(
        self, conditions: ReadConditions, every: Iterable[Key], now_ms: int
    ) -> Iterator[None]:
        """`begin`, in slices."""
        if conditions != self._conditions:
            for part in parts(list(every)):
                self.requested(part)
                yield
            self._conditions = conditions
        self.begin(conditions, (), now_ms)

    def was_read(self, key: Key, partition: Fetched | None, *, at_end: bool) -> None:
        """The partition was read; None if that was refused. `watch` must follow before anything
        else can happen to it (so before each pause), unless the whole fetch ends."""
        if at_end:
            self._due.pop(key, None)
        if partition is not None and self._keys.get(partition) != key:
            self._unwatched.append((key, partition))

    def watch(self) -> None:
        """Start watching the partitions that were read."""
        if not self.is_closed:
            for key, partition in self._unwatched:
                self._keys[partition] = key
                self._partitions[key] = partition
                watch(partition, self)
        self._unwatched.clear()

    def served(self, key: Key) -> None:
        """The response holds records of it: the others come first next time, so that a small
        max_bytes starves none."""
        if key in self._due:
            del self._due[key]
            self._due[key] = None

    def forget(self, keys: Iterable[Key]) -> None:
        """The client removes these partitions from its session."""
        for key in keys:
            if key in self._partitions:
                self._leave(self._partitions[key])
            self._due.pop(key, None)

    def end(self) -> bool:
        """Stop watching the next SLICE partitions, and wake the sleeping requests. True if this
        must be called again.
        """
        if not self.is_closed:
            self.is_closed = True
            self._wake()
        for partition in list(islice(self._keys, SLICE)):
            self._leave(partition)
        return bool(self._keys)

    @property
    def is_watching(self) -> bool:
        """There is something to `end`."""
        return bool(self._keys)

    def close(self) -> None:
        """`end`, at once."""
        while self.end():
            pass

    def changed(self, partition: Fetched, change: Change) -> None:
        """See `waiting.Watcher`."""
        is_replica = self._conditions.replica is not None
        if change in _FOR_REPLICAS and not is_replica:
            return
        key = self._keys[partition]
        if key not in self._due:
            self._stops_resting(partition)
            self._due[key] = None
        if change is Change.GONE:
            self._lose(partition)
        if change not in _CAN_WAIT or not is_replica:
            self._wake()

    def sleep(self, wake: Wake) -> None:
        """Call `wake` at each change that this fetch must not miss, until `wakes`."""
        self._sleepers[wake] = None

    def wakes(self, wake: Wake) -> None:
        """The request no longer sleeps."""
        self._sleepers.pop(wake, None)

    def _wake(self) -> None:
        for wake in self._sleepers:
            wake()

    def _leave(self, partition: Fetched) -> None:
        if self._keys[partition] not in self._due:
            self._stops_resting(partition)
        self._lose(partition)
        unwatch(partition, self)

    def _lose(self, partition: Fetched) -> None:
        key = self._keys.pop(partition)
        if self._partitions[key] is partition:
            del self._partitions[key]

    def _stops_resting(self, partition: Fetched) -> None:
        replica = self._conditions.replica
        if replica is not None:
            partition.was_idle(replica.broker_id, self.requested_ms)
