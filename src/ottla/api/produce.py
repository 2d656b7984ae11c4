"""Produce (key 0): appends one batch to each of the partitions named.

v3: record batches of magic 2 (v0-2 are advertised and refused, see `protocol.versions`). v5: log
start offset in the answer. v8 (KIP-467): errors of single records. v9: flexible. v10 (KIP-951): the
current leader beside NOT_LEADER_OR_FOLLOWER. v12 (KIP-890). v13 (KIP-516): topics by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ottla.api.context import Context
from ottla.api.current_leader import current_leader, node_endpoints
from ottla.broker.partition import Appended, Partition
from ottla.network.handlers import EndConnectionError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS

KEY: Final = 0

_ACKS_ALL: Final = -1
_KNOWN_ACKS: Final = (-1, 0, 1)


class _Append(NamedTuple):
    """One partition's append, to be acknowledged at `place` of the topic's answers."""

    topic: Any
    partition: Partition
    appended: Appended
    answers: list[Any]
    place: int


async def handle(request: Any, context: Context) -> Any:
    """None where the client wants no answer (acks=0)."""
    by_id, zstd_allowed = context.version >= 13, context.version >= 7
    to_all = request.acks == _ACKS_ALL
    appends: list[_Append] = []
    topics = []
    failed: str | None = None
    for key, (topic, named) in _each_once(request.topic_data, by_id).items():
        answers: list[Any] = []
        for each in named.values():
            try:
                if request.acks not in _KNOWN_ACKS:
                    raise ApiError(ErrorCode.invalid_required_acks)
                if request.transactional_id is not None:
                    raise ApiError(ErrorCode.transactional_id_authorization_failed)
                partition = context.broker.partitions.find(key, each.index)
                if partition.topic in INTERNAL_TOPICS:
                    # Kafka makes an exception for the client id __admin_client, which any client
                    # may use. The brokers' own appends do not come this way.
                    raise ApiError(
                        ErrorCode.invalid_topic_exception,
                        f"Cannot append to internal topic {partition.topic}",
                    )
                appended = partition.append(
                    each.records, context.client_id, to_all=to_all, zstd_allowed=zstd_allowed
                )
            except ApiError as error:
                failed = f"{key}-{each.index}: {error}"
                answers.append(_refusal(key, each.index, error, context))
            else:
                appends.append(_Append(key, partition, appended, answers, len(answers)))
                answers.append(_answer(each.index, appended, context))
        topics.append((topic, answers))
    if request.acks == 0:
        if failed is not None:
            # The one way to tell a producer that wants no answers that something is wrong.
            raise EndConnectionError(
                f"a produce request without acknowledgement failed on {failed}"
            )
        return None
    await _acknowledge(appends, request, context)
    build = context.messages
    extra = {}
    if context.version >= 10:
        leaders = [
            each.current_leader.leader_id for _, answers in topics for each in _told(answers)
        ]
        if leaders:
            extra["node_endpoints"] = node_endpoints(leaders, context)
    return build.ProduceResponse(
        responses=tuple(
            build.TopicProduceResponse(
                **({"topic_id": topic.topic_id} if by_id else {"name": topic.name}),
                partition_responses=tuple(answers),
            )
            for topic, answers in topics
        ),
        **extra,
    )


def _each_once(topics: Any, by_id: bool) -> dict[Any, tuple[Any, dict[int, Any]]]:
    """Topics and partitions by name or id and by number. Of those named twice the last batch counts
    (KafkaApis.handleProduceRequest makes a map of them).
    """
    found: dict[Any, tuple[Any, dict[int, Any]]] = {}
    for topic in topics:
        _, partitions = found.setdefault(topic.topic_id if by_id else topic.name, (topic, {}))
        for each in topic.partition_data:
            partitions[each.index] = each
    return found


async def _acknowledge(appends: list[_Append], request: Any, context: Context) -> None:
    """Waits until each append may be acknowledged, all within the request's timeout."""
    until_ms = context.broker.clock.monotonic_ms() + request.timeout
    for each in appends:
        try:
            left_ms = until_ms - context.broker.clock.monotonic_ms()
            await each.partition.acknowledged(each.appended, left_ms)
        except ApiError as error:
            each.answers[each.place] = _refusal(each.topic, each.partition.index, error, context)


def _told(answers: list[Any]) -> Iterator[Any]:
    """The answers that name the leader."""
    return (
        each
        for each in answers
        if each.error_code is not ErrorCode.none and each.current_leader.leader_id >= 0
    )


def _answer(index: int, appended: Appended, context: Context) -> Any:
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
    if context.version >= 10:
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
