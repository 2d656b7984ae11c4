"""Produce (key 0): appends one batch to each of the partitions named.

v3: record batches of magic 2 (v0-2 are advertised and refused, see `protocol.versions`). v5: log
start offset in the answer. v8 (KIP-467): errors of single records. v9: flexible. v10 (KIP-951): the
current leader beside NOT_LEADER_OR_FOLLOWER. v12 (KIP-890). v13 (KIP-516): topics by id.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.call import Call, EndConnectionError
from ottla.broker.partition import Appended, Partition
from ottla.protocol.errors import ApiError, ErrorCode

KEY: Final = 0

_ACKS_ALL: Final = -1
_KNOWN_ACKS: Final = (-1, 0, 1)


async def handle(request: Any, call: Call) -> Any:
    """None where the client wants no answer (acks=0)."""
    by_id = call.version >= 13
    appends: list[tuple[Partition, int, list[Any], int]] = []
    topics = []
    failed: str | None = None
    for topic in request.topic_data:
        key = topic.topic_id if by_id else topic.name
        answers: list[Any] = []
        for each in topic.partition_data:
            try:
                if request.acks not in _KNOWN_ACKS:
                    raise ApiError(ErrorCode.invalid_required_acks)
                if request.transactional_id is not None:
                    raise ApiError(ErrorCode.transactional_id_authorization_failed)
                partition = call.node.partitions.find(key, each.index)
                if request.acks == _ACKS_ALL:
                    partition.check_in_sync()
                appended = partition.append(
                    each.records, call.client_id, zstd_allowed=call.version >= 7
                )
            except ApiError as error:
                failed = f"{key}-{each.index}: {error}"
                answers.append(_refusal(each.index, error, call))
            else:
                appends.append((partition, appended.last_offset, answers, len(answers)))
                answers.append(_answer(each.index, appended, call))
        topics.append((topic, answers))
    if request.acks == 0:
        if failed is not None:
            # The one way to tell a producer that wants no answers that something is wrong.
            raise EndConnectionError(
                f"a produce request without acknowledgement failed on {failed}"
            )
        return None
    for partition, last_offset, answers, place in appends:
        try:
            await partition.settled(last_offset, request.acks == _ACKS_ALL, request.timeout)
        except ApiError as error:
            answers[place] = _refusal(partition.index, error, call)
    build = call.messages
    return build.ProduceResponse(
        responses=tuple(
            build.TopicProduceResponse(
                **({"topic_id": topic.topic_id} if by_id else {"name": topic.name}),
                partition_responses=tuple(answers),
            )
            for topic, answers in topics
        )
    )


def _answer(index: int, appended: Appended, call: Call) -> Any:
    return call.messages.PartitionProduceResponse(
        index=index,
        base_offset=appended.first_offset,
        log_append_time=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _refusal(index: int, error: ApiError, call: Call) -> Any:
    build = call.messages
    record_errors = getattr(error, "record_errors", ())
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
    )
