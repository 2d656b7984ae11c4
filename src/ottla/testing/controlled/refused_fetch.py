"""A Fetch response that refuses partitions, within the client's fetch session (KIP-227).

A request of a session names only the partitions that changed. The refusal has to name those that
the session holds, and the session's epoch has to go on as the client expects.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.fetch_session import FetchedPartition

_SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
    )
)


def refused_fetch(request: Any, context: Context, code: ErrorCode, topic: str | None) -> Any:
    """Errors for the partitions of `topic`, or for all; no records for the others.

    Errors of fetch sessions refuse the request as a whole, as in Kafka.
    """
    build = context.messages
    broker = context.broker
    if code in _SESSION_ERRORS:
        return build.FetchResponse(error_code=code)
    try:
        fetch = broker.fetch_sessions.begin(request, context.version, broker.clock.monotonic_ms())
    except ApiError as error:
        return build.FetchResponse(error_code=error.code)
    by_topic: dict[Any, list[Any]] = {}
    for each in fetch.partitions.values():
        is_met = topic is None or _name(each, context) == topic
        if not is_met and fetch.incremental:
            continue
        # The next response has to name this partition, whatever its high watermark is then.
        each.sent_high_watermark = each.sent_log_start = -1
        data = _error(each, context, code) if is_met else _no_records(each, context)
        by_topic.setdefault(each.topic, []).append(data)
    if not fetch.session_id:
        fetch.wait.close()
    field = "topic_id" if fetch.uses_ids else "topic"
    responses = tuple(
        build.FetchableTopicResponse(**{field: key}, partitions=tuple(partitions))
        for key, partitions in by_topic.items()
    )
    return build.FetchResponse(session_id=fetch.session_id, responses=responses)


def _name(each: FetchedPartition, context: Context) -> str | None:
    if isinstance(each.topic, str):
        return each.topic
    known = None if each.topic is None else context.broker.image.topic_by_id(each.topic)
    return None if known is None else known.name


def _error(each: FetchedPartition, context: Context, code: ErrorCode) -> Any:
    return context.messages.PartitionData(
        partition_index=each.index, error_code=code, high_watermark=-1, records=b""
    )


def _no_records(each: FetchedPartition, context: Context) -> Any:
    try:
        partition = context.broker.partitions.find(each.topic, each.index)
    except ApiError as error:
        return _error(each, context, error.code)
    return context.messages.PartitionData(
        partition_index=each.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.start_offset,
        records=b"",
    )
