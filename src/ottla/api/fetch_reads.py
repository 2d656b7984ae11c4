"""What one Fetch request reads: the partitions that are due, until the response is full."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.api.context import Context
from ottla.api.metadata import broker_addresses
from ottla.config.broker_cluster import RACK_AWARE_SELECTOR
from ottla.log.errors import RebuildingError
from ottla.log.file_range import EMPTY
from ottla.log.page_cache import NotCachedError
from ottla.log.task import Rebuild
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versions import FETCH
from ottla.replica.fetch_session import Fetch, FetchedPartition
from ottla.replica.fetch_wait import Key, ReadConditions
from ottla.replica.partition import Partition
from ottla.replica.partition_reader import NO_REPLICA, Read, rack_aware_replica, refused_read
from ottla.replication.leader import FetchingReplica
from ottla.runtime.slices import SLICE, parts
from ottla.storage.after_rebuild import MAX_REBUILDS, over

MAX_RESPONSE_BYTES: Final = 8 << 20
"""A response stays in memory until its client has read it, and many clients may be slow. So it
holds at most this, or one batch, even if the client and fetch.max.bytes allow more."""

Item: TypeAlias = tuple[FetchedPartition, Partition | None, Read, int]
"""What was read of a partition, and how often its log had been truncated before."""
Found: TypeAlias = dict[Key, Item]
Items: TypeAlias = Iterable[tuple[Key, Item]]

_NONE: Final[frozenset[Key]] = frozenset()
_READ_COMMITTED: Final = 1
_UNKNOWN: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)
_FROM_FOLLOWERS: Final = 11
_REPLICA_STATE: Final = 15
"""The first versions of a request with these fields."""


def fetching_replica(request: Any, version: int) -> FetchingReplica | None:
    """The replica that fetches; None for a consumer (replica id -1; debugging clients: -2)."""
    if version >= _REPLICA_STATE:
        state = request.replica_state
        broker_id, epoch = state.replica_id, state.replica_epoch
    else:
        broker_id, epoch = request.replica_id, -1
    return None if broker_id < 0 else FetchingReplica(broker_id, epoch)


class Reads:
    """What one request has read so far.

    A request may read 200,000 partitions, so this pauses after each slice. What was read before a
    pause is then a little older than the rest, as if the answer had been on its way.
    """

    __slots__ = (
        "_context", "_is_urgent", "_listens", "_looked_up", "_max_bytes", "_may", "_min_bytes",
        "_rebuilds",
        "_rebuilds_left", "cold", "conditions", "fetch", "found", "has_changed", "is_throttled",
        "size_bytes",
    )  # fmt: skip

    def __init__(self, fetch: Fetch, request: Any, context: Context) -> None:
        self.found: Found = {}
        """Where each partition's data lies; it is read when the response is written."""
        self.cold: list[Key] = []
        """Partitions whose offset look-up needs the disk, or an index that is being built again:
        `_look_up` sees to that."""
        self._rebuilds: list[Rebuild] = []
        self._rebuilds_left = MAX_REBUILDS
        self.has_changed = False
        """A partition of this fetch changed in a pause of the last `read_due`."""
        self.fetch = fetch
        self._context = context
        self._may = context.broker.authorization
        self._listens = False
        self.size_bytes = 0
        """Of all that was found."""
        self._is_urgent = False
        self._looked_up: frozenset[Key] = _NONE
        max_bytes = min(context.broker.config.fetch_max_bytes, MAX_RESPONSE_BYTES)
        version = context.version
        replica = fetching_replica(request, version)
        self.is_throttled = replica is None and context.broker.throttling.applies_to(
            context.session
        )
        """Whether this consumer may have a quota."""
        min_bytes = request.min_bytes
        if self.is_throttled:
            # More would be too much for any consumer (KafkaApis.handleFetchRequest).
            most_bytes = context.broker.throttling.most_fetched_bytes(context)
            if most_bytes is not None:
                max_bytes, min_bytes = min(max_bytes, most_bytes), min(min_bytes, most_bytes)
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._min_bytes = min(min_bytes, MAX_RESPONSE_BYTES)
        # From v11 on a consumer may read from followers (KIP-392).
        leader_only = replica is not None or version < _FROM_FOLLOWERS
        self.conditions = ReadConditions(
            replica,
            request.isolation_level == _READ_COMMITTED,
            leader_only,
            "" if leader_only else request.rack_id,
        )

    @property
    def are_enough(self) -> bool:
        return self.size_bytes >= self._min_bytes or self._is_urgent or not self.fetch.partitions

    @property
    def delay_others(self) -> bool:
        """Whether a request of another type is behind this consumer's. Behind another fetch it is
        not: a client that sends fetches ahead would never wait."""
        queued = self._context.session.queued
        return (
            bool(queued)
            and self.conditions.replica is None
            and int.from_bytes(queued[0][:2], "big") != FETCH
        )

    def read_few(self) -> bool:
        """Read the partitions that are due, as far as the response has room. True if they are many,
        or if some need the disk: then `read_in_slices` must follow.
        """
        self.has_changed = False
        due = self.fetch.wait.due()
        if len(due) > SLICE:
            return True
        self._read_all(due)
        return bool(self.cold)

    async def read_in_slices(self) -> None:
        """Read the rest of what is due."""
        while True:
            if self.cold:
                await self._look_up()
            self.has_changed = False
            for keys in parts(self.fetch.wait.due()):
                self._read_all(keys)
                self._watch()
                await self.pause()
            if not self.cold:
                return

    def _read_all(self, keys: list[Key]) -> None:
        wait, found = self.fetch.wait, self.found
        partitions, looked_up = self.fetch.partitions, self._looked_up
        is_first = not found
        for key in keys:
            each = partitions[key]
            # Python code hashes a topic id: these look-ups take time.
            before = None if is_first else found.get(key)
            size_before = 0 if before is None else before[2].range.size_bytes
            self.size_bytes -= size_before
            try:
                partition, read = self._read(
                    each,
                    is_repeated=before is not None,
                    wait=key in looked_up if looked_up else False,
                )
            except (NotCachedError, RebuildingError) as error:
                # It stays due, and is read again after `_look_up`.
                self.size_bytes += size_before
                self.cold.append(key)
                if isinstance(error, RebuildingError):
                    self._rebuilds.append(error.rebuild)
                continue
            self.size_bytes += read.range.size_bytes
            found[key] = each, partition, read, 0 if partition is None else partition.log.cuts
            wait.was_read(key, partition, at_end=read.at_end)
            self._is_urgent = self._is_urgent or (
                read.error_code is not ErrorCode.none
                or read.diverging_epoch is not None
                or read.preferred_replica != NO_REPLICA
                or (self.conditions.replica is not None and each.is_behind(read.log_start_offset))
            )

    async def pause(self) -> None:
        """Others run."""
        self.fetch.pauses()
        await asyncio.sleep(0)

    def _watch(self) -> None:
        """From here on, no change of what was read is missed."""
        self.fetch.wait.watch()
        if not self._listens:
            self._listens = True
            self.fetch.wait.sleep(self._changed)

    def _changed(self) -> None:
        self.has_changed = True

    def end(self) -> None:
        """The request is over."""
        self.fetch.rests()
        if self._listens:
            self.fetch.wait.wakes(self._changed)

    async def _look_up(self) -> None:
        """Read from the disk what is needed to find offsets, in a thread, after the rebuilds of
        indexes.
        """
        self._watch()
        self.fetch.pauses()
        if self._rebuilds:
            self._rebuilds_left -= 1
            for rebuild in dict.fromkeys(self._rebuilds):
                await over(rebuild)
            self._rebuilds.clear()
        works: list[Callable[[], None]] = []
        for keys in parts(self.cold):
            for key in keys:
                each = self.fetch.partitions[key]
                with suppress(ApiError):  # the next read returns the error
                    partition = self._context.broker.partitions.find(each.topic, each.index)
                    works += partition.reader.find_works(
                        each.fetch_offset, committed_only=self.conditions.committed_only
                    )
            if len(self.cold) > SLICE:
                await self.pause()
        self._looked_up = self._looked_up.union(self.cold)
        self.cold.clear()
        await self._context.broker.disk_reads.run(partial(_run_all, works))

    def _check_permission(self, each: FetchedPartition) -> None:
        """Raise ApiError if a consumer may not read it: at each read, because the ACLs may have
        changed since its session began.
        """
        assert self._may is not None
        topic = each.topic
        if topic is None or isinstance(topic, UUID):
            known = None if topic is None else self._context.broker.image.topic_by_id(topic)
            if known is None:
                return  # which is the answer
            topic = known.name
        session = self._context.session
        if self.conditions.replica is None and not self._may.allows(
            session, Operation.READ, Resource.TOPIC, topic
        ):
            raise ApiError(ErrorCode.topic_authorization_failed)

    def _read(
        self, each: FetchedPartition, *, is_repeated: bool, wait: bool
    ) -> tuple[Partition | None, Read]:
        """`is_repeated`: this request has read the partition before, and waited."""
        conditions, context = self.conditions, self._context
        replica = conditions.replica
        max_bytes = max(0, min(each.max_bytes, self._max_bytes - self.size_bytes))
        try:
            if self._may is not None:
                self._check_permission(each)
            partition: Partition = context.broker.partitions.find(each.topic, each.index)
            each.name = partition.topic
            if replica is None:
                read = partition.reader.read(
                    each.fetch_offset,
                    max_bytes=max_bytes,
                    min_one_batch=not self.size_bytes,
                    leader_epoch=each.leader_epoch,
                    last_fetched_epoch=each.last_fetched_epoch,
                    committed_only=conditions.committed_only,
                    leader_only=conditions.leader_only,
                    wait=wait,
                )
                if conditions.rack:
                    read = _prefer(partition, each.fetch_offset, conditions.rack, read, context)
            else:
                read = partition.read_for_replica(
                    replica,
                    each.fetch_offset,
                    start_offset=each.log_start_offset,
                    max_bytes=max_bytes,
                    min_one_batch=not self.size_bytes,
                    leader_epoch=each.leader_epoch,
                    last_fetched_epoch=each.last_fetched_epoch,
                    is_repeated=is_repeated,
                    wait=wait,
                )
                read = _throttle(partition, replica.broker_id, read, context)
        except ApiError as error:
            if isinstance(error, RebuildingError) and self._rebuilds_left:
                raise
            context.broker.storage_failure.read_failed(
                str(each.name or each.topic), each.index, error
            )
            code = error.code
            if code is ErrorCode.unknown_topic_id and each.name is not None:
                code = _invalid_id_code(each.name, each.index, context)
            refused = refused_read(code)
            # Kafka's way to say so, also to readers of uncommitted records.
            return None, refused._replace(aborted=()) if code in _UNKNOWN else refused
        return partition, read


def _invalid_id_code(name: str, index: int, context: Context) -> ErrorCode:
    """The error for an invalid topic id whose name the session still knows.

    Kafka's sessions keep the name that an id had (FetchSession.CachedPartition).
    """
    topic = context.broker.image.topic(name)
    if topic is None or index >= len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition
    return ErrorCode.inconsistent_topic_id


def _throttle(partition: Partition, replica: int, read: Read, context: Context) -> Read:
    """An empty read for a throttled out-of-sync replica while the quota is exceeded (KIP-73)."""
    throttle = context.broker.leader_throttle
    topic, index = partition.topic, partition.index
    if not throttle.names(topic, index) or replica in partition.leader.state.isr:
        return read
    if throttle.is_exceeded:
        return read._replace(range=EMPTY, at_end=False)
    return read


def _prefer(partition: Partition, offset: int, rack: str, read: Read, context: Context) -> Read:
    """Redirect the consumer to a replica in its rack, without data, if one has its records."""
    broker = context.broker
    if broker.config.replica_selector_class != RACK_AWARE_SELECTOR or not partition.leads_others:
        return read
    # The best replica may change without a change of this partition.
    read = read._replace(at_end=False)
    # Brokers that the consumer's listener does not reach are excluded (KIP-103).
    racks = {each: rack for each, _, _, rack in broker_addresses(context)}
    preferred = rack_aware_replica(partition.leader, rack, racks, offset)
    if preferred == NO_REPLICA:
        return read
    aborted = None if read.aborted is None else ()
    return read._replace(range=EMPTY, preferred_replica=preferred, aborted=aborted)


def _run_all(works: list[Callable[[], None]]) -> None:
    for work in works:
        work()
