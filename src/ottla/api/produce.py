"""Produce (key 0): appends one batch to each named partition.

v3: record batches of magic 2 (v0-2 are advertised and refused, see `protocol.versions`). v5: log
start offset in the response. v8 (KIP-467): errors of single records. v9: flexible. v10 (KIP-951):
the current leader with NOT_LEADER_OR_FOLLOWER. v12 (KIP-890): the partition is added to the
transaction, see `transactional_produce`. v13 (KIP-516): topics by id.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.api.context import Context
from ottla.api.current_leader import current_leader, node_endpoints
from ottla.api.transactional_produce import (
    NOT_TRANSACTIONAL,
    PartitionKey,
    Verified,
    refused_without_id,
    verify,
)
from ottla.log.errors import RebuildingError
from ottla.network.handlers import EndConnectionError
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.records.errors import LongBatchError
from ottla.records.header import BatchHeader, Buffer
from ottla.replica.leader_appends import AppendResult
from ottla.replica.partition import Partition
from ottla.runtime.cpu_thread import take_turns
from ottla.runtime.slices import in_turns
from ottla.storage.after_rebuild import after_rebuild

KEY: Final = 0
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TOPIC),
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
)

_ZSTD: Final = 7
_LEADERS: Final = 10
_TOPIC_IDS: Final = 13
"""The first versions of a request or response with these fields."""

MAX_APPENDED_BYTES: Final = 8 << 20
"""Of several batches in one turn of the event loop: 20 ms."""

_ACKS_ALL: Final = -1
_KNOWN_ACKS: Final = (-1, 0, 1)
_NOT_HERE: Final = (
    ErrorCode.not_leader_or_follower,
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.unknown_topic_id,
)


class _Append(NamedTuple):
    """One partition's append, to be acknowledged at `position` of the topic's responses."""

    topic: Any
    partition: Partition
    appended: AppendResult
    answers: list[Any]
    position: int


async def handle(request: Any, context: Context) -> Any:
    """None if the client wants no response (acks=0)."""
    by_id = context.version >= _TOPIC_IDS
    topics = []
    waiting: list[_Append] = []
    failed: str | None = None
    requested = _each_once(request.topic_data, by_id)
    verified = NOT_TRANSACTIONAL
    if request.transactional_id is not None:
        verified = await verify(request.transactional_id, _batches(requested), context)
    elif not _is_single(request.topic_data):
        # The only batch of a request is refused by the append.
        verified = refused_without_id(_batches(requested))
    left_bytes = MAX_APPENDED_BYTES
    for key, (topic, named) in requested.items():
        answers: list[Any] = []
        for each in named.values():
            left_bytes -= len(each.records or b"")
            if left_bytes < 0:
                left_bytes = MAX_APPENDED_BYTES
                await asyncio.sleep(0)
            try:
                try:
                    partition, appended = _append(key, each, request, verified, context)
                except (LongBatchError, RebuildingError):
                    append = partial(_append_long, key, each, request, verified, context)
                    partition, appended = await after_rebuild(append)
            except ApiError as error:
                if error.code in _NOT_HERE:
                    context.broker.partitions.note_refused(
                        key, each.index, each.records, error.code,
                        context.broker.clock.monotonic_ms(),
                    )  # fmt: skip
                failed = f"{key}-{each.index}: {error}"
                answers.append(_refusal(key, each.index, error, context))
            else:
                if not partition.is_acknowledged(appended):
                    waiting.append(_Append(key, partition, appended, answers, len(answers)))
                answers.append(_answer(each.index, appended, context))
        topics.append((topic, answers))
    if request.acks == 0:
        if failed is not None:
            # The only way to report an error to a producer that wants no responses.
            raise EndConnectionError(
                f"a produce request without acknowledgement failed on {failed}"
            )
        return None
    if waiting:
        await _acknowledge(waiting, request, context)
    return _response(topics, context)


def _append(
    key: Any,
    each: Any,
    request: Any,
    verified: Verified,
    context: Context,
    checked: tuple[BatchHeader, Buffer] | None = None,
) -> tuple[Partition, AppendResult]:
    """Append one partition's batch; raises ApiError, and LongBatchError if it must be checked
    before by `_check_long`.
    """
    acks = request.acks
    if acks not in _KNOWN_ACKS:
        raise ApiError(ErrorCode.invalid_required_acks)
    guard = verified.get((key, each.index)) if verified else None
    if isinstance(guard, ApiError):
        raise guard
    partition = context.broker.partitions.find(key, each.index)
    if partition.topic in INTERNAL_TOPICS:
        # Kafka allows it for the client id __admin_client, which any client may use. The brokers'
        # own appends do not use this path.
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"Cannot append to internal topic {partition.topic}",
        )
    appended = partition.appends.append(
        each.records,
        context.client_id,
        to_all=acks == _ACKS_ALL,
        zstd_allowed=context.version >= _ZSTD,
        is_transactional=request.transactional_id is not None,
        guard=guard,
        checked=checked,
    )
    return partition, appended


async def _append_long(
    key: Any, each: Any, request: Any, verified: Verified, context: Context
) -> tuple[Partition, AppendResult]:
    """Appends a batch that would hold the event loop: checked in a thread, and written in steps.
    Raises ApiError.
    """
    checked = await _check_long(key, each, context)
    staged = context.broker.partitions.find(key, each.index).appends.stage(*checked)
    if staged is None:
        return _append(key, each, request, verified, context, checked)
    try:
        await in_turns(staged.steps())
        return _append(key, each, request, verified, context, checked)
    finally:
        staged.end()


async def _check_long(key: Any, each: Any, context: Context) -> tuple[BatchHeader, Buffer]:
    """Checks a batch in a thread; raises ApiError. What was true of the partition before may have
    changed afterwards.
    """
    partition = context.broker.partitions.find(key, each.index)
    now_ms = context.broker.clock.now_ms()
    zstd_allowed = context.version >= _ZSTD
    check = partial(
        partition.appends.check,
        each.records, partition.log.config, now_ms, zstd_allowed, None, take_turns,
    )  # fmt: skip
    return await context.broker.cpu_thread.run(check)


def _response(topics: list[tuple[Any, list[Any]]], context: Context) -> Any:
    build = context.messages
    by_id = context.version >= _TOPIC_IDS
    leaders = _leaders(topics) if context.version >= _LEADERS else ()
    responses = []
    for topic, answers in topics:
        partitions = tuple(answers)
        if by_id:
            answer = build.TopicProduceResponse(
                topic_id=topic.topic_id, partition_responses=partitions
            )
        else:
            answer = build.TopicProduceResponse(name=topic.name, partition_responses=partitions)
        responses.append(answer)
    if leaders:
        return build.ProduceResponse(
            responses=tuple(responses), node_endpoints=node_endpoints(leaders, context)
        )
    return build.ProduceResponse(responses=tuple(responses))


def _is_single(topics: Any) -> bool:
    """Whether a request names one partition."""
    return len(topics) == 1 and len(topics[0].partition_data) == 1


def _batches(requested: dict[Any, tuple[Any, dict[int, Any]]]) -> list[tuple[PartitionKey, Any]]:
    return [
        ((key, each.index), each.records)
        for key, (_, named) in requested.items()
        for each in named.values()
    ]


def _each_once(topics: Any, by_id: bool) -> dict[Any, tuple[Any, dict[int, Any]]]:
    """Topics and partitions by name or id and by number. If one is named twice, the last batch
    counts (KafkaApis.handleProduceRequest builds a map).
    """
    if _is_single(topics):
        (topic,) = topics
        (each,) = topic.partition_data
        return {topic.topic_id if by_id else topic.name: (topic, {each.index: each})}
    found: dict[Any, tuple[Any, dict[int, Any]]] = {}
    for topic in topics:
        _, partitions = found.setdefault(topic.topic_id if by_id else topic.name, (topic, {}))
        for each in topic.partition_data:
            partitions[each.index] = each
    return found


async def _acknowledge(appends: list[_Append], request: Any, context: Context) -> None:
    """Wait until each append may be acknowledged, all within the request's timeout."""
    clock = context.broker.clock
    until_ms = clock.monotonic_ms() + request.timeout if len(appends) > 1 else 0
    for topic, partition, appended, answers, position in appends:
        try:
            left_ms = until_ms - clock.monotonic_ms() if until_ms else request.timeout
            await partition.acknowledged(appended, left_ms)
        except ApiError as error:
            answers[position] = _refusal(topic, partition.index, error, context)


def _leaders(topics: list[tuple[Any, list[Any]]]) -> list[int]:
    """The leaders that the responses name beside an error."""
    return [
        each.current_leader.leader_id
        for _, answers in topics
        for each in answers
        if each.error_code is not ErrorCode.none and each.current_leader.leader_id >= 0
    ]


def _answer(index: int, appended: AppendResult, context: Context) -> Any:
    return context.messages.PartitionProduceResponse(
        index=index,
        base_offset=appended.first_offset,
        log_append_time=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _refusal(key: Any, index: int, error: ApiError, context: Context) -> Any:
    build = context.messages
    record_errors = getattr(error, "record_errors", ())
    extra = {}
    if context.version >= _LEADERS:
        leader = current_leader(key, index, error.code, context)
        if leader is not None:
            extra["current_leader"] = leader
    return build.PartitionProduceResponse(
        index=index,
        error_code=error.code,
        error_message=error.message,
        base_offset=-1,
        log_append_time=-1,
        log_start_offset=-1,
        record_errors=tuple(
            build.BatchIndexAndErrorMessage(
                batch_index=each.batch_index, batch_index_error_message=each.message
            )
            for each in record_errors
        ),
        **extra,
    )
