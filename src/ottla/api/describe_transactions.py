"""DescribeTransactions (key 65): the state of transactional ids (KIP-664).

While markers are written, the topics are those that have none yet.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices
from ottla.transactions.stored import TransactionValue

KEY: Final = 65
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),)


async def handle(request: Any, context: Context) -> Any:
    """Each id once: a short request that repeats a large one would have an answer of gigabytes."""
    described: dict[str, Any] = {}
    slices = Slices()
    for transactional_id in request.transactional_ids:
        await slices.count()
        if transactional_id not in described:
            described[transactional_id] = await _described(transactional_id, context)
    return context.messages.DescribeTransactionsResponse(
        transaction_states=tuple(described.values())
    )


async def _described(transactional_id: str, context: Context) -> Any:
    build = context.messages
    try:
        value = (await context.broker.transactions.describe(transactional_id)).value
    except ApiError as error:
        value, code = None, error.code
    else:
        code = ErrorCode.none if value is not None else ErrorCode.transactional_id_not_found
    if value is None:
        # The other fields are zero, as in Kafka.
        return build.TransactionState(error_code=code, transactional_id=transactional_id)
    return build.TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state=value.state.value,
        transaction_timeout=value.timeout_ms,
        transaction_start_time=value.start_ms,
        producer_id=value.producer_id,
        producer_epoch=value.epoch,
        topics=_topics(value, context),
    )


def _topics(value: TransactionValue, context: Context) -> tuple[Any, ...]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(value.partitions):
        topics.setdefault(topic, []).append(index)
    return tuple(
        context.messages.TopicData(topic=topic, partitions=tuple(indexes))
        for topic, indexes in topics.items()
    )
