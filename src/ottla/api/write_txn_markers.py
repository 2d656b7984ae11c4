"""WriteTxnMarkers (key 27): the coordinator of transactions ends them in the partitions that this
broker leads (KIP-98); an administrator aborts a hanging one (KIP-664).

v2: each marker names its transaction version (KIP-1228): the rules of its epoch depend on it. The
answer is given once the markers are on all in-sync replicas; a partition without answer by then is
REQUEST_TIMED_OUT, and its marker is sent again, which does no harm.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

from ottla.api.broker_requests import is_from_any_broker, refused
from ottla.api.context import Context
from ottla.protocol.access import BETWEEN_BROKERS, Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC
from ottla.protocol.versioned_field import VersionedField
from ottla.replica.leader_appends import AppendResult
from ottla.replica.partition import Partition
from ottla.runtime.slices import Slices

KEY: Final = 27
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER), *BETWEEN_BROKERS)
"""Either suffices: the first is an administrator's."""
MARKERS_A_SLICE: Final = 100
"""Each marker is an append."""
TIMEOUT_MS: Final = 30_000
"""Kafka's default of request.timeout.ms."""

_TRANSACTION_VERSION: Final = VersionedField(KEY, "WritableTxnMarker", "transaction_version", 0)

_Codes = dict[tuple[str, int], ErrorCode]
"""By topic and partition, of one marker."""


class _Append(NamedTuple):
    """A marker in a partition, to be acknowledged; its code goes into `codes`."""

    partition: Partition
    appended: AppendResult
    codes: _Codes


async def handle(request: Any, context: Context) -> Any:
    if not is_from_any_broker(context) and not _is_of_administrator(request):
        return await refused(request, context)
    appends: list[_Append] = []
    groups: list[asyncio.Task[None]] = []
    results: list[tuple[Any, _Codes]] = []
    slices = Slices(MARKERS_A_SLICE)
    for marker in request.markers:
        codes: _Codes = {}
        results.append((marker, codes))
        for topic in marker.topics:
            for index in topic.partition_indexes:
                where = (topic.name, index)
                if where in codes:
                    continue  # named again: one marker, as in Kafka
                codes[where] = ErrorCode.none
                await slices.count()
                if topic.name == OFFSETS_TOPIC and context.broker.partitions.get(*where):
                    task = _end_in_group(marker, index, codes, context)
                    groups.append(asyncio.create_task(task))
                    continue
                try:
                    appends.append(_append(marker, topic.name, index, codes, context))
                except ApiError as error:
                    codes[where] = error.code
    await _acknowledge(appends, context)
    await asyncio.gather(*groups)
    build = context.messages
    return build.WriteTxnMarkersResponse(
        markers=tuple(_result(marker, codes, build) for marker, codes in results)
    )


def _is_of_administrator(request: Any) -> bool:
    """Whether all it does is abort, which `kafka-transactions abort` asks for. A transaction has no
    records in the topic of the coordinators' state: a marker there would only fence them.
    """
    return not any(
        marker.transaction_result
        or any(topic.name in (TRANSACTIONS_TOPIC, SHARE_TOPIC) for topic in marker.topics)
        for marker in request.markers
    )


def _append(marker: Any, topic: str, index: int, codes: _Codes, context: Context) -> _Append:
    """Append the marker to one partition; raises ApiError."""
    partition = context.broker.partitions.get(topic, index)
    if partition is None:
        # As in Kafka, also if another broker has it: the coordinator asks for the leader again.
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    appended = partition.appends.append_marker(
        marker.producer_id,
        marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=_TRANSACTION_VERSION(marker),
    )
    return _Append(partition, appended, codes)


async def _end_in_group(marker: Any, index: int, codes: _Codes, context: Context) -> None:
    """The coordinator of the groups writes the marker itself: it applies what it appends."""
    code = ErrorCode.none
    try:
        await context.broker.groups.complete_transaction(
            index,
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            _TRANSACTION_VERSION(marker),
        )
    except ApiError as error:
        code = error.code
    codes[OFFSETS_TOPIC, index] = code


async def _acknowledge(appends: list[_Append], context: Context) -> None:
    """Wait until the markers are on all in-sync replicas, all within one timeout."""
    clock = context.broker.clock
    until_ms = clock.monotonic_ms() + TIMEOUT_MS
    for partition, appended, codes in appends:
        code = ErrorCode.none
        try:
            await partition.acknowledged(appended, max(0, until_ms - clock.monotonic_ms()))
        except ApiError as error:
            code = error.code
        codes[partition.topic, partition.index] = code


def _result(marker: Any, codes: _Codes, build: Any) -> Any:
    return build.WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            build.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    build.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[topic.name, index]
                    )
                    for index in dict.fromkeys(topic.partition_indexes)
                ),
            )
            for topic in marker.topics
        ),
    )
