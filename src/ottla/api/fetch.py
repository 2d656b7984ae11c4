"""Fetch (key 1): reads batches from partitions, waiting where there are too few bytes.

v7 (KIP-227): sessions. v9 (KIP-320): leader epochs. v11 (KIP-392): rack. v12: flexible,
and divergence by last fetched epoch (KIP-595). v13 (KIP-516): topics by id. v15 (KIP-903): replica
state. v16 (KIP-951): current leaders. v17, v18: for replicas.
A fetch answers with whole batches from the one that holds the offset on; the first batch of a
response comes whole, even where it exceeds the limits (KIP-74).
"""

from __future__ import annotations

import logging
from typing import Any, Final

from ottla.api.current_leader import current_leader, node_endpoints
from ottla.broker.call import Call
from ottla.broker.fetch_session import Fetch, FetchedPartition
from ottla.broker.partition import Partition, Read, refused_read
from ottla.broker.partition_read import NO_REPLICA, rack_aware_replica
from ottla.broker.waiting import Waiter
from ottla.config.broker_cluster import RACK_AWARE_SELECTOR
from ottla.log.file_range import EMPTY
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.leader import Follower

KEY: Final = 1

logger = logging.getLogger("ottla.fetch")

MOST_RESPONSE_BYTES: Final = 8 << 20
"""A response lies in memory until its client has taken it, and slow clients may be many: so it
holds no more than this, or one batch, whatever larger limit client and fetch.max.bytes allow."""

_READ_COMMITTED: Final = 1
_FROM_FOLLOWERS: Final = 11


async def handle(request: Any, call: Call) -> Any:
    node = call.node
    try:
        fetch = node.fetch_sessions.begin(request, call.version, node.clock.monotonic_ms())
    except ApiError as error:
        return call.messages.FetchResponse(error_code=error.code)
    until_ms = node.clock.monotonic_ms() + max(0, request.max_wait)
    follower, noted = _follower(request), False
    while True:
        reads = _read_all(fetch, request, call, follower, noted)
        noted = True
        left_ms = until_ms - node.clock.monotonic_ms()
        if left_ms <= 0 or node.closing or _is_enough(reads, request.min_bytes):
            break
        watched = [read.partition for _, read in reads if read.partition is not None]
        await Waiter(watched).wait(left_ms)
    return _respond(fetch, reads, call)


def _is_enough(reads: list[tuple[FetchedPartition, Read]], min_bytes: int) -> bool:
    size = 0
    for _, read in reads:
        if (
            read.error_code is not ErrorCode.none
            or read.diverging_epoch is not None
            or read.preferred_replica != NO_REPLICA
        ):
            return True
        size += read.size_bytes
    return size >= min(min_bytes, MOST_RESPONSE_BYTES) or not reads


def _follower(request: Any) -> Follower | None:
    """The replica that fetches; None for a consumer (replica id -1, of debugging clients -2)."""
    state = getattr(request, "replica_state", None)
    if state is not None:
        broker_id, epoch = state.replica_id, state.replica_epoch
    else:
        broker_id, epoch = getattr(request, "replica_id", -1), -1
    return None if broker_id < 0 else Follower(broker_id, epoch)


def _read_all(
    fetch: Fetch, request: Any, call: Call, follower: Follower | None, noted: bool
) -> list[tuple[FetchedPartition, Read]]:
    """Where each partition's data lies; the data itself is read when the response is written.

    A follower's position is taken from its fetch once, not again when the fetch has waited.
    """
    asked_bytes = getattr(request, "max_bytes", MOST_RESPONSE_BYTES)
    left = most = min(asked_bytes, call.node.config.fetch_max_bytes, MOST_RESPONSE_BYTES)
    committed_only = getattr(request, "isolation_level", 0) == _READ_COMMITTED
    # From v11 on a consumer may read from followers (KIP-392).
    leader_only = follower is not None or call.version < _FROM_FOLLOWERS
    rack = "" if leader_only else getattr(request, "rack_id", "")
    reads = []
    for each in fetch.partitions.values():
        try:
            partition: Partition = call.node.partitions.find(each.topic, each.index)
            read = partition.read(
                each.fetch_offset,
                max_bytes=max(0, min(each.max_bytes, left)),
                min_one_batch=left == most,
                leader_epoch=each.leader_epoch,
                last_fetched_epoch=each.last_fetched_epoch,
                committed_only=committed_only,
                follower=(
                    None
                    if follower is None
                    else follower._replace(start_offset=each.log_start_offset)
                ),
                noted=noted,
                leader_only=leader_only,
            )
            if follower is not None:
                read = _throttle(partition, follower.broker_id, read, call)
            if rack:
                read = _prefer(partition, each.fetch_offset, rack, read, call)
        except ApiError as error:
            read = refused_read(error.code)
        left -= read.size_bytes
        reads.append((each, read))
    return reads


def _throttle(partition: Partition, replica: int, read: Read, call: Call) -> Read:
    """Nothing for a throttled replica that is not in sync while the rate is used up (KIP-73)."""
    throttle = call.node.leader_throttle
    topic, index = partition.topic, partition.index
    if not throttle.names(topic, index) or replica in partition.leader.state.isr:
        return read
    if throttle.is_exceeded:
        return read._replace(range=EMPTY)
    throttle.record(topic, index, read.size_bytes)
    return read


def _prefer(partition: Partition, offset: int, rack: str, read: Read, call: Call) -> Read:
    """Sends the consumer to a replica in its rack, without data, where one has what it wants."""
    node = call.node
    if node.config.replica_selector_class != RACK_AWARE_SELECTOR or not partition.leads_others:
        return read
    racks = {each.broker_id: each.rack for each in node.image.brokers.values()}
    preferred = rack_aware_replica(partition.leader, rack, racks, offset)
    if preferred == NO_REPLICA:
        return read
    return read._replace(range=EMPTY, preferred_replica=preferred)


def _respond(fetch: Fetch, reads: list[tuple[FetchedPartition, Read]], call: Call) -> Any:
    build = call.messages
    topics: dict[Any, list[Any]] = {}
    leaders: set[int] = set()
    for each, read in reads:
        if fetch.is_news(each, read):
            topics.setdefault(each.topic, []).append(_partition_data(each, read, call, leaders))
    extra = {}
    if leaders and call.version >= 16:
        extra["node_endpoints"] = node_endpoints(leaders, call)
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


def _partition_data(each: FetchedPartition, read: Read, call: Call, leaders: set[int]) -> Any:
    build = call.messages
    try:
        records = read.data()
    except OSError as error:
        logger.error("cannot read %s-%d: %s", each.topic, each.index, error)
        read, records = refused_read(ErrorCode.kafka_storage_error), b""
    extra = {}
    if read.diverging_epoch is not None:
        epoch, end_offset = read.diverging_epoch
        extra["diverging_epoch"] = build.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if read.error_code is not ErrorCode.none and call.version >= 12:
        leader = current_leader(each.topic, each.index, read.error_code, call)
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
