"""Fetch (key 1): reads batches from partitions, waiting where there are too few bytes.

v7 (KIP-227): sessions. v9 (KIP-320): leader epochs. v11 (KIP-392): rack. v12: flexible,
and divergence by last fetched epoch (KIP-595). v13 (KIP-516): topics by id. v15 (KIP-903): replica
state. v16 (KIP-951): current leaders. v17, v18: for replicas.
A fetch answers with whole batches from the one that holds the offset on; the first batch of a
response comes whole, even where it exceeds the limits (KIP-74).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.api.context import Context
from ottla.api.current_leader import current_leader, node_endpoints
from ottla.api.metadata import broker_addresses
from ottla.broker.disk_reads import DiskReads
from ottla.broker.fetch_session import Fetch, FetchedPartition
from ottla.broker.fetch_watch import CONSUMER, Key
from ottla.broker.held_partition import HeldPartition
from ottla.broker.partition import Partition, Read, refused_read
from ottla.broker.partition_read import NO_REPLICA, rack_aware_replica
from ottla.config.broker_cluster import RACK_AWARE_SELECTOR
from ottla.log.file_range import EMPTY, RangeRead
from ottla.log.page_cache import NotCachedError, ReadBuffers
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.records.header import Buffer
from ottla.replication.leader import Follower

KEY: Final = 1
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)

logger = logging.getLogger("ottla.fetch")

MAX_RESPONSE_BYTES: Final = 8 << 20
"""A response lies in memory until its client has taken it, and slow clients may be many: so it
holds no more than this, or one batch, whatever larger limit client and fetch.max.bytes allow."""

Found: TypeAlias = dict[Key, tuple[FetchedPartition, Read]]

_READ_COMMITTED: Final = 1
_FROM_FOLLOWERS: Final = 11

_REPLICA_STATE: Final = VersionedField[Any](KEY, "FetchRequest", "replica_state", None)
_REPLICA_ID: Final = VersionedField(KEY, "FetchRequest", "replica_id", -1)
_RACK_ID: Final = VersionedField(KEY, "FetchRequest", "rack_id", "")


async def handle(request: Any, context: Context) -> Any:
    broker = context.broker
    now_ms = broker.clock.monotonic_ms()
    try:
        fetch = broker.fetch_sessions.begin(request, context.version, now_ms)
    except ApiError as error:
        return context.messages.FetchResponse(error_code=error.code)
    until_ms = now_ms + max(0, request.max_wait)
    reads = _Reads(fetch, request, context)
    fetch.watch.begin(reads.terms, fetch.partitions, reads.replica, now_ms)
    try:
        while True:
            reads.look()
            while await reads.look_up():
                reads.look()
            left_ms = until_ms - broker.clock.monotonic_ms()
            ends = left_ms <= 0 or broker.closing or reads.are_enough
            if fetch.session_id or not ends:
                reads.watch()
            if ends:
                if reads.replica != CONSUMER:
                    _count_throttled(reads.found.values(), context)
                data: dict[Key, memoryview] = {}
                cold = _load(reads.found, data, broker.disk_reads.buffers)
                if cold:
                    await _load_cold(cold, reads.found, data, broker.disk_reads)
                return _respond(fetch, reads.found, data, context)
            await fetch.watch.wait(left_ms)
    finally:
        if not fetch.session_id:
            fetch.watch.close()


def _follower(request: Any) -> Follower | None:
    """The replica that fetches; None for a consumer (replica id -1, of debugging clients -2)."""
    state = _REPLICA_STATE(request)
    if state is not None:
        broker_id, epoch = state.replica_id, state.replica_epoch
    else:
        broker_id, epoch = _REPLICA_ID(request), -1
    return None if broker_id < 0 else Follower(broker_id, epoch)


def is_between_brokers(request: Any) -> bool:
    """Replicas fetch too."""
    return _follower(request) is not None


class _Reads:
    """What one request has found so far, in the partitions that had to be looked at."""

    def __init__(self, fetch: Fetch, request: Any, context: Context) -> None:
        self.found: Found = {}
        """Where each partition's data lies; it is read when the response is written."""
        self._fetch = fetch
        self._context = context
        self._size_bytes = 0
        self._is_urgent = False
        self._unwatched: list[tuple[Key, Read]] = []
        self._cold: list[Key] = []
        """Partitions whose offset cannot be looked up without the disk."""
        self._looked_up: set[Key] = set()
        self._follower = follower = _follower(request)
        asked_bytes = request.max_bytes
        self._most = min(asked_bytes, context.broker.config.fetch_max_bytes, MAX_RESPONSE_BYTES)
        self._least = min(request.min_bytes, MAX_RESPONSE_BYTES)
        self._committed_only = request.isolation_level == _READ_COMMITTED
        # From v11 on a consumer may read from followers (KIP-392).
        self._leader_only = follower is not None or context.version < _FROM_FOLLOWERS
        self._rack = "" if self._leader_only else _RACK_ID(request)

    @property
    def replica(self) -> int:
        return CONSUMER if self._follower is None else self._follower.broker_id

    @property
    def terms(self) -> object:
        """What a session's partitions are read by; another rack or isolation finds other things."""
        return self._follower, self._committed_only, self._leader_only, self._rack

    @property
    def are_enough(self) -> bool:
        return self._is_urgent or self._size_bytes >= self._least or not self._fetch.partitions

    def look(self) -> None:
        """Reads what is due, as far as the response has room."""
        watch = self._fetch.watch
        for key in watch:
            each = self._fetch.partitions[key]
            before = self.found.get(key)
            size_before = 0 if before is None else before[1].size_bytes
            self._size_bytes -= size_before
            try:
                read = self._read(each, noted=before is not None, wait=key in self._looked_up)
            except NotCachedError:
                # It stays due, and is looked at again after `look_up`.
                self._size_bytes += size_before
                self._cold.append(key)
                continue
            self._size_bytes += read.size_bytes
            self.found[key] = each, read
            self._unwatched.append((key, read))
            if read.rests:
                watch.rests(key)
            self._is_urgent = self._is_urgent or (
                read.error_code is not ErrorCode.none
                or read.diverging_epoch is not None
                or read.preferred_replica != NO_REPLICA
                or (self._follower is not None and each.is_behind(read.log_start_offset))
            )

    async def look_up(self) -> bool:
        """Reads from the disk what `look` needs to find offsets, in a thread; False: nothing."""
        if not self._cold:
            return False
        self.watch()
        works = []
        for key in self._cold:
            each = self._fetch.partitions[key]
            with suppress(ApiError):  # `look` says what is wrong
                log = self._context.broker.partitions.find(each.topic, each.index).log
                works.append(log.find_work(each.fetch_offset))
        self._looked_up.update(self._cold)
        self._cold.clear()
        await self._context.broker.disk_reads.run(partial(_run_all, works))
        return True

    def watch(self) -> None:
        """Has what was looked at wake this fetch; to be called before anything else may happen."""
        for key, read in self._unwatched:
            if read.partition is not None:
                self._fetch.watch.watch(key, read.partition)
        self._unwatched.clear()

    def _read(self, each: FetchedPartition, *, noted: bool, wait: bool) -> Read:
        """A follower's position is taken from its fetch once, not again when it has waited."""
        follower, context = self._follower, self._context
        left = self._most - self._size_bytes
        try:
            partition: Partition = context.broker.partitions.find(each.topic, each.index)
            each.name = partition.topic
            read = partition.read(
                each.fetch_offset,
                max_bytes=max(0, min(each.max_bytes, left)),
                min_one_batch=not self._size_bytes,
                leader_epoch=each.leader_epoch,
                last_fetched_epoch=each.last_fetched_epoch,
                committed_only=self._committed_only,
                follower=(
                    None
                    if follower is None
                    else follower._replace(start_offset=each.log_start_offset)
                ),
                noted=noted,
                leader_only=self._leader_only,
                wait=wait,
            )
            if follower is not None:
                read = _throttle(partition, follower.broker_id, read, context)
            if self._rack:
                read = _prefer(partition, each.fetch_offset, self._rack, read, context)
        except ApiError as error:
            code = error.code
            if code is ErrorCode.unknown_topic_id and each.name is not None:
                code = _of_a_known_name(each.name, each.index, context)
            read = refused_read(code)
        return read


def _of_a_known_name(name: str, index: int, context: Context) -> ErrorCode:
    """Why a topic's id, which its session knows by this name, leads to nothing.

    Kafka's sessions keep the name that an id had (FetchSession.CachedPartition).
    """
    topic = context.broker.image.topic(name)
    if topic is None or index >= len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition
    return ErrorCode.inconsistent_topic_id


def _throttle(partition: Partition, replica: int, read: Read, context: Context) -> Read:
    """Nothing for a throttled replica that is not in sync while the rate is used up (KIP-73)."""
    throttle = context.broker.leader_throttle
    topic, index = partition.topic, partition.index
    if not throttle.names(topic, index) or replica in partition.leader.state.isr:
        return read
    if throttle.is_exceeded:
        return read._replace(range=EMPTY, rests=False)
    return read


def _count_throttled(reads: Iterable[tuple[FetchedPartition, Read]], context: Context) -> None:
    """What goes to replicas in sync counts too, so that all replication keeps to the rate."""
    throttle = context.broker.leader_throttle
    for _, read in reads:
        if read.partition is not None:
            throttle.record(read.partition.topic, read.partition.index, read.size_bytes)


def _prefer(partition: Partition, offset: int, rack: str, read: Read, context: Context) -> Read:
    """Sends the consumer to a replica in its rack, without data, where one has what it wants."""
    broker = context.broker
    if broker.config.replica_selector_class != RACK_AWARE_SELECTOR or not partition.leads_others:
        return read
    # Which replica is nearer may change without a word of this partition's.
    read = read._replace(rests=False)
    # Those that this consumer's listener does not lead to are no choice for it (KIP-103).
    racks = {each: rack for each, _, _, rack in broker_addresses(context)}
    preferred = rack_aware_replica(partition.leader, rack, racks, offset)
    if preferred == NO_REPLICA:
        return read
    return read._replace(range=EMPTY, preferred_replica=preferred)


class _Cold(NamedTuple):
    """A read that waits for the disk, and how often its log had been cut before."""

    key: Key
    partition: HeldPartition
    cuts: int
    read: RangeRead


def _load(found: Found, data: dict[Key, memoryview], buffers: ReadBuffers) -> list[_Cold]:
    """Puts into `data` what is in the page cache; returns the reads that wait for the disk. In
    `found` an error takes the place of what cannot be read.
    """
    cold: list[_Cold] = []
    for key, (each, read) in found.items():
        if not read.range.size_bytes:
            continue
        try:
            begun = read.begin(buffers)
        except OSError as error:
            found[key] = each, _unreadable(each, error)
            continue
        if isinstance(begun, memoryview):
            data[key] = begun
        else:
            assert read.partition is not None
            cold.append(_Cold(key, read.partition, read.partition.log.cuts, begun))
    return cold


async def _load_cold(
    cold: list[_Cold], found: Found, data: dict[Key, memoryview], reads: DiskReads
) -> None:
    """The same for what waits for the disk, in a thread."""
    faults = await reads.run(partial(_finish, [each.read for each in cold]))
    for (key, partition, cuts, read), fault in zip(cold, faults, strict=True):
        each = found[key][0]
        if fault is not None:
            found[key] = each, _unreadable(each, fault)
        elif partition.log.cuts != cuts:
            # Other records may lie there by now.
            found[key] = each, refused_read(ErrorCode.not_leader_or_follower)
        else:
            data[key] = read.data


def _run_all(works: list[Callable[[], None]]) -> None:
    for work in works:
        work()


def _finish(reads: list[RangeRead]) -> list[OSError | None]:
    """Reads from the disk, for a worker thread: what failed, in the order of the reads."""
    faults: list[OSError | None] = []
    for read in reads:
        try:
            read.finish()
        except OSError as error:
            faults.append(error)
        else:
            faults.append(None)
    return faults


def _unreadable(each: FetchedPartition, error: OSError) -> Read:
    logger.error("cannot read %s-%d: %s", each.topic, each.index, error)
    return refused_read(ErrorCode.kafka_storage_error)


def _respond(fetch: Fetch, found: Found, data: dict[Key, memoryview], context: Context) -> Any:
    build = context.messages
    topics: dict[Any, list[Any]] = {}
    leaders: set[int] = set()
    for key, (each, read) in found.items():
        if fetch.is_news(each, read):
            records = data.get(key, b"")
            topics.setdefault(each.topic, []).append(
                _partition_data(each, read, records, context, leaders)
            )
    extra = {}
    if leaders and context.version >= 16:
        extra["node_endpoints"] = node_endpoints(leaders, context)
    return build.FetchResponse(
        session_id=fetch.session_id,
        responses=tuple(
            build.FetchableTopicResponse(
                **({"topic_id": key} if fetch.uses_ids else {"topic": key}),
                partitions=tuple(partitions),
            )
            for key, partitions in topics.items()
        ),
        **extra,
    )


def _partition_data(
    each: FetchedPartition, read: Read, records: Buffer, context: Context, leaders: set[int]
) -> Any:
    build = context.messages
    extra = {}
    if read.diverging_epoch is not None:
        epoch, end_offset = read.diverging_epoch
        extra["diverging_epoch"] = build.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if read.error_code is not ErrorCode.none and context.version >= 12:
        leader = current_leader(each.topic, each.index, read.error_code, context)
        if leader is not None:
            leaders.add(leader.leader_id)
            extra["current_leader"] = leader
    return build.PartitionData(
        partition_index=each.index,
        error_code=read.error_code,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=read.preferred_replica,
        records=records,
        **extra,
    )
