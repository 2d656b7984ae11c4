"""InitProducerId (key 22): a producer id and epoch (KIP-98).

Without a transactional id: a new id for an idempotent producer. With one: the coordinator fences
the producers before this one, and aborts their open transaction.

v3 (KIP-360): the producer may send its id and epoch, to get the next epoch; without a transactional
id a new id serves as well. v4: the error PRODUCER_FENCED. v5 (KIP-890): TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import ProducerResult
from ottla.transactions.stored import NO_EPOCH, NO_PRODUCER_ID

KEY: Final = 22
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
    Access(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER),
)

_FENCED: Final = 4

_PRODUCER_ID: Final = VersionedField(KEY, "InitProducerIdRequest", "producer_id", NO_PRODUCER_ID)
_PRODUCER_EPOCH: Final = VersionedField(KEY, "InitProducerIdRequest", "producer_epoch", NO_EPOCH)


async def handle(request: Any, context: Context) -> Any:
    try:
        result = await _initialize(request, context)
    except ApiError as error:
        result = ProducerResult(error.code)
    error_code = result.error
    if error_code is ErrorCode.producer_fenced and context.version < _FENCED:
        error_code = ErrorCode.invalid_producer_epoch
    return context.messages.InitProducerIdResponse(
        error_code=error_code,
        producer_id=result.producer.producer_id,
        producer_epoch=result.producer.epoch,
    )


async def _initialize(request: Any, context: Context) -> ProducerResult:
    producer = ProducerEpoch(_PRODUCER_ID(request), _PRODUCER_EPOCH(request))
    if (producer.producer_id == NO_PRODUCER_ID) != (producer.epoch == NO_EPOCH):
        raise ApiError(ErrorCode.invalid_request)
    broker = context.broker
    if request.transactional_id is None:
        # Without a controller that can reserve the next block now, the producer retries (KIP-730).
        return ProducerResult(ErrorCode.none, ProducerEpoch(await broker.producer_ids.next(), 0))
    return await broker.transactions.initialize(
        request.transactional_id,
        request.transaction_timeout,
        None if producer.producer_id == NO_PRODUCER_ID else producer,
    )
