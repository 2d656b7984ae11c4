"""Fetch (key 1): reads batches from partitions, and waits if there are too few bytes.

v7 (KIP-227): sessions. v9 (KIP-320): leader epochs. v11 (KIP-392): rack. v12: flexible,
and divergence by last fetched epoch (KIP-595). v13 (KIP-516): topics by id. v15 (KIP-903): replica
state. v16 (KIP-951): current leaders. v17, v18: for replicas.
A response holds whole batches, starting with the one that holds the offset. The first batch is
always whole, even if it exceeds the limits (KIP-74).

A connection's requests are answered in order, so a consumer's fetch that waits for records holds
up the requests behind it, for up to fetch.max.wait.ms (500 ms). Kafka lets them wait. Here such a
fetch is answered as soon as a request of another type is behind it; max_wait is only a maximum.
Spark gains most: KafkaConsumer sends the next fetch ahead, and after each poll Spark's executor
asks for the partition's first and last offsets (InternalKafkaConsumer.fetch).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.api.context import Context
from ottla.api.current_leader import current_leader, node_endpoints
from ottla.api.metadata import broker_addresses
from ottla.config.broker_cluster import RACK_AWARE_SELECTOR
from ottla.log.file_range import EMPTY, RangeRead
from ottla.log.page_cache import NotCachedError, ReadBuffers
from ottla.log.transaction_index import AbortedTransaction
from ottla.network.client_session import ClientSession
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import Buffer
from ottla.replica.disk_reads import DiskReads
from ottla.replica.fetch_session import Fetch, FetchedPartition
from ottla.replica.fetch_wait import FetchWait, Key, ReadConditions
from ottla.replica.partition import Partition
from ottla.replica.partition_reader import NO_REPLICA, Read, rack_aware_replica, refused_read
from ottla.replication.leader import FetchingReplica

KEY: Final = 1
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)

logger = logging.getLogger("ottla.fetch")

MAX_RESPONSE_BYTES: Final = 8 << 20
"""A response stays in memory until its client has read it, and many clients may be slow. So it
holds at most this, or one batch, even if the client and fetch.max.bytes allow more."""

Found: TypeAlias = dict[Key, tuple[FetchedPartition, Partition | None, Read]]

_READ_COMMITTED: Final = 1
_UNKNOWN: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)
_FROM_FOLLOWERS: Final = 11
_REPLICA_STATE: Final = 15
"""The first versions of a request with these fields."""


async def handle(request: Any, context: Context) -> Any:
    """See `replica.fetch_wait` for the steps."""
    broker = context.broker
    now_ms = broker.clock.monotonic_ms()
    try:
        fetch = broker.fetch_sessions.begin(request, context.version, now_ms, is_between_brokers)
    except ApiError as error:
        return context.messages.FetchResponse(error_code=error.code)
    until_ms = now_ms + max(0, request.max_wait)
    reads = _Reads(fetch, request, context)
    wait = fetch.wait
    wait.begin(reads.conditions, fetch.partitions, now_ms)
    try:
        while True:
            reads.read_due()
            while reads.cold:
                await reads.look_up()
                reads.read_due()
            left_ms = until_ms - broker.clock.monotonic_ms()
            ends = (
                left_ms <= 0
                or broker.closing
                or reads.are_enough
                or reads.delay_others
                # The session is gone: nobody watches the partitions any more.
                or wait.is_closed
            )
            if fetch.session_id or not ends:
                wait.watch()
            if ends:
                if reads.conditions.replica is not None:
                    _count_throttled(reads.found, context)
                data: dict[Key, memoryview] = {}
                cold = _load(reads.found, data, broker.disk_reads.buffers)
                if cold:
                    await _load_cold(cold, reads.found, data, broker.disk_reads)
                return _respond(fetch, reads.found, data, context)
            await _sleep(wait, left_ms, context.session)
    finally:
        if not fetch.session_id:
            wait.close()


async def _sleep(wait: FetchWait, max_ms: int, session: ClientSession) -> None:
    """Sleep until a change that this fetch must not miss, or another request of the connection, or
    until `max_ms` have passed."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    wait.sleep(wake)
    session.arrived = wake
    handle = loop.call_later(max_ms / 1000, wake)
    try:
        await future
    finally:
        handle.cancel()
        session.arrived = None
        wait.wakes(wake)


def _replica(request: Any, version: int) -> FetchingReplica | None:
    """The replica that fetches; None for a consumer (replica id -1; debugging clients: -2)."""
    if version >= _REPLICA_STATE:
        state = request.replica_state
        broker_id, epoch = state.replica_id, state.replica_epoch
    else:
        broker_id, epoch = request.replica_id, -1
    return None if broker_id < 0 else FetchingReplica(broker_id, epoch)


def is_between_brokers(request: Any) -> bool:
    """Whether a replica fetches."""
    return _replica(request, request.__version__) is not None


class _Reads:
    """What one request has read so far."""

    __slots__ = (
        "_context", "_fetch", "_is_urgent", "_looked_up", "_max_bytes", "_min_bytes", "_size_bytes",
        "cold", "conditions", "found",
    )  # fmt: skip

    def __init__(self, fetch: Fetch, request: Any, context: Context) -> None:
        self.found: Found = {}
        """Where each partition's data lies; it is read when the response is written."""
        self.cold: list[Key] = []
        """Partitions whose offset look-up needs the disk: `look_up` does it."""
        self._fetch = fetch
        self._context = context
        self._size_bytes = 0
        self._is_urgent = False
        self._looked_up: set[Key] = set()
        max_bytes = min(context.broker.config.fetch_max_bytes, MAX_RESPONSE_BYTES)
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._min_bytes = min(request.min_bytes, MAX_RESPONSE_BYTES)
        version = context.version
        replica = _replica(request, version)
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
        return self._size_bytes >= self._min_bytes or self._is_urgent or not self._fetch.partitions

    @property
    def delay_others(self) -> bool:
        """Whether a request of another type is behind this consumer's. Behind another fetch it is
        not: a client that sends fetches ahead would never wait."""
        queued = self._context.session.queued
        return (
            bool(queued)
            and self.conditions.replica is None
            and int.from_bytes(queued[0][:2], "big") != KEY
        )

    def read_due(self) -> None:
        """Read the partitions that are due, as far as the response has room."""
        wait, found = self._fetch.wait, self.found
        for key in wait.due():
            each = self._fetch.partitions[key]
            before = found.get(key)
            size_before = 0 if before is None else before[2].range.size_bytes
            self._size_bytes -= size_before
            try:
                partition, read = self._read(
                    each, is_repeated=before is not None, wait=key in self._looked_up
                )
            except NotCachedError:
                # It stays due, and is read again after `look_up`.
                self._size_bytes += size_before
                self.cold.append(key)
                continue
            self._size_bytes += read.range.size_bytes
            found[key] = each, partition, read
            wait.was_read(key, partition, at_end=read.at_end)
            self._is_urgent = self._is_urgent or (
                read.error_code is not ErrorCode.none
                or read.diverging_epoch is not None
                or read.preferred_replica != NO_REPLICA
                or (self.conditions.replica is not None and each.is_behind(read.log_start_offset))
            )

    async def look_up(self) -> None:
        """Read from the disk what `read_due` needs to find offsets, in a thread."""
        self._fetch.wait.watch()
        works: list[Callable[[], None]] = []
        for key in self.cold:
            each = self._fetch.partitions[key]
            with suppress(ApiError):  # `read_due` returns the error
                partition = self._context.broker.partitions.find(each.topic, each.index)
                works += partition.reader.find_works(
                    each.fetch_offset, committed_only=self.conditions.committed_only
                )
        self._looked_up.update(self.cold)
        self.cold.clear()
        await self._context.broker.disk_reads.run(partial(_run_all, works))

    def _read(
        self, each: FetchedPartition, *, is_repeated: bool, wait: bool
    ) -> tuple[Partition | None, Read]:
        """`is_repeated`: this request has read the partition before, and waited."""
        conditions, context = self.conditions, self._context
        replica = conditions.replica
        max_bytes = max(0, min(each.max_bytes, self._max_bytes - self._size_bytes))
        try:
            partition: Partition = context.broker.partitions.find(each.topic, each.index)
            each.name = partition.topic
            if replica is None:
                read = partition.reader.read(
                    each.fetch_offset,
                    max_bytes=max_bytes,
                    min_one_batch=not self._size_bytes,
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
                    min_one_batch=not self._size_bytes,
                    leader_epoch=each.leader_epoch,
                    last_fetched_epoch=each.last_fetched_epoch,
                    is_repeated=is_repeated,
                    wait=wait,
                )
                read = _throttle(partition, replica.broker_id, read, context)
        except ApiError as error:
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


def _count_throttled(found: Found, context: Context) -> None:
    """Bytes for in-sync replicas count too, so that all replication keeps to the rate."""
    throttle = context.broker.leader_throttle
    for _, partition, read in found.values():
        if partition is not None:
            throttle.record(partition.topic, partition.index, read.size_bytes)


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


class _Cold(NamedTuple):
    """A read that waits for the disk, and the number of truncations of its log before."""

    key: Key
    partition: Partition
    cuts: int
    read: RangeRead


def _load(found: Found, data: dict[Key, memoryview], buffers: ReadBuffers) -> list[_Cold]:
    """Put data from the page cache into `data`; returns the reads that wait for the disk. In
    `found` an error replaces each partition that cannot be read.
    """
    cold: list[_Cold] = []
    for key, (each, partition, read) in found.items():
        size_bytes = read.range.size_bytes
        if not size_bytes:
            continue
        assert partition is not None
        partition.counts.bytes_out += size_bytes
        try:
            begun = read.range.begin(buffers)
        except OSError as error:
            found[key] = each, None, _unreadable(each, error)
            continue
        if isinstance(begun, memoryview):
            data[key] = begun
        else:
            cold.append(_Cold(key, partition, partition.log.cuts, begun))
    return cold


async def _load_cold(
    cold: list[_Cold], found: Found, data: dict[Key, memoryview], reads: DiskReads
) -> None:
    """The same for the reads that wait for the disk, in a thread."""
    faults = await reads.run(partial(_finish, [each.read for each in cold]))
    for (key, partition, cuts, read), fault in zip(cold, faults, strict=True):
        each = found[key][0]
        if fault is not None:
            found[key] = each, None, _unreadable(each, fault)
        elif partition.log.cuts != cuts:
            # Other records may be at these offsets by now.
            found[key] = each, None, refused_read(ErrorCode.not_leader_or_follower)
        else:
            data[key] = read.data


def _run_all(works: list[Callable[[], None]]) -> None:
    for work in works:
        work()


def _finish(reads: list[RangeRead]) -> list[OSError | None]:
    """Read from the disk, in a worker thread; returns the errors, in the order of the reads."""
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
    for key, (each, _, read) in found.items():
        if fetch.has_to_send(each, read):
            answer = _partition_data(each, read, data.get(key, b""), context, leaders)
            answers = topics.get(each.topic)
            if answers is None:
                topics[each.topic] = [answer]
            else:
                answers.append(answer)
    topic_response = build.FetchableTopicResponse
    responses = []
    for topic, answers in topics.items():
        if fetch.uses_ids:
            responses.append(topic_response(topic_id=topic, partitions=tuple(answers)))
        else:
            responses.append(topic_response(topic=topic, partitions=tuple(answers)))
    if leaders and context.version >= 16:
        return build.FetchResponse(
            session_id=fetch.session_id,
            responses=tuple(responses),
            node_endpoints=node_endpoints(leaders, context),
        )
    return build.FetchResponse(session_id=fetch.session_id, responses=tuple(responses))


def _aborted(transactions: Sequence[AbortedTransaction], context: Context) -> Any:
    build = context.messages.AbortedTransaction
    return tuple(
        build(producer_id=each.producer_id, first_offset=each.first_offset) for each in transactions
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
        aborted_transactions=None if read.aborted is None else _aborted(read.aborted, context),
        preferred_read_replica=read.preferred_replica,
        records=records,
        **extra,
    )
