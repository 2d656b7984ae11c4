"""InitProducerId (key 22): a producer id and epoch for an idempotent producer (KIP-98).

v3 (KIP-360): the producer may send its id and epoch, to get the next epoch; without a transactional
id a new id serves as well. v4: the error PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.records.header import NO_PRODUCER_ID

KEY: Final = 22
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
    Access(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER),
)

_NO_EPOCH: Final = -1

_PRODUCER_ID: Final = VersionedField(KEY, "InitProducerIdRequest", "producer_id", NO_PRODUCER_ID)
_PRODUCER_EPOCH: Final = VersionedField(KEY, "InitProducerIdRequest", "producer_epoch", _NO_EPOCH)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    known_id = _PRODUCER_ID(request) != NO_PRODUCER_ID
    known_epoch = _PRODUCER_EPOCH(request) != _NO_EPOCH
    if known_id != known_epoch:
        return build.InitProducerIdResponse(
            error_code=ErrorCode.invalid_request, producer_id=-1, producer_epoch=-1
        )
    if request.transactional_id is not None:
        # No broker coordinates transactions; only this error is final for clients.
        refused = ErrorCode.transactional_id_authorization_failed
        code = refused if request.transactional_id else ErrorCode.invalid_request
        return build.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    try:
        producer_id = await context.broker.producer_ids.next()
    except ApiError as error:
        # No controller can reserve the next block now: the producer retries (KIP-730).
        return build.InitProducerIdResponse(
            error_code=error.code, producer_id=-1, producer_epoch=-1
        )
    return build.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
