"""AddOffsetsToTxn (key 25): a transaction is about to commit offsets of a group (KIP-98).

It adds the group's partition of `__consumer_offsets`. v2: PRODUCER_FENCED. v3: flexible. v4
(KIP-890): the error TRANSACTION_ABORTABLE. Clients of transaction.version 2 do not send it.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import AddRequest
from ottla.transactions.stored import TopicPartition

KEY: Final = 25
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
    Access(Operation.READ, Resource.GROUP),
)

_FENCED: Final = 2


async def handle(request: Any, context: Context) -> Any:
    broker = context.broker
    partition = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
    added = AddRequest(
        request.transactional_id,
        ProducerEpoch(request.producer_id, request.producer_epoch),
        frozenset({partition}),
        client_version=0,
    )
    try:
        error = await broker.transactions.add(added)
    except ApiError as failed:
        error = failed.code
    if error is ErrorCode.producer_fenced and context.version < _FENCED:
        error = ErrorCode.invalid_producer_epoch
    return context.messages.AddOffsetsToTxnResponse(error_code=error)
