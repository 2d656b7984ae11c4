"""EndTxn (key 26): commits or aborts a transaction (KIP-98).

v2: PRODUCER_FENCED. v3: flexible. v4 (KIP-890): the error TRANSACTION_ABORTABLE. v5 (KIP-890):
transaction.version 2; the response has the producer's next id and epoch.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import EPOCH_BUMP_VERSION, EndRequest, ProducerResult

KEY: Final = 26
ACCESS: Final = (Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),)

_FENCED: Final = 2
_NEXT_EPOCH: Final = 5


async def handle(request: Any, context: Context) -> Any:
    has_next_epoch = context.version >= _NEXT_EPOCH
    ending = EndRequest(
        request.transactional_id,
        ProducerEpoch(request.producer_id, request.producer_epoch),
        request.committed,
        client_version=EPOCH_BUMP_VERSION if has_next_epoch else 0,
    )
    try:
        result = await context.broker.transactions.end(ending)
    except ApiError as failed:
        result = ProducerResult(failed.code)
    error = result.error
    if error is ErrorCode.producer_fenced and context.version < _FENCED:
        error = ErrorCode.invalid_producer_epoch
    if not has_next_epoch:
        return context.messages.EndTxnResponse(error_code=error)
    return context.messages.EndTxnResponse(
        error_code=error,
        producer_id=result.producer.producer_id,
        producer_epoch=result.producer.epoch,
    )
