"""AllocateProducerIds (key 67, between brokers): a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.broker_requests import REFUSED, is_from_broker
from ottla.api.context import Context
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import ApiError, ErrorCode

KEY: Final = 67
ACCESS: Final = BETWEEN_BROKERS


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    if not is_from_broker(context, request.broker_id):
        return build.AllocateProducerIdsResponse(error_code=REFUSED)
    if not context.broker.controller.active:
        return build.AllocateProducerIdsResponse(error_code=ErrorCode.not_controller)
    known = context.broker.image.brokers.get(request.broker_id)
    if known is None or known.epoch != request.broker_epoch:
        return build.AllocateProducerIdsResponse(error_code=ErrorCode.stale_broker_epoch)
    try:
        first, end = await context.broker.controller.next_producer_ids(request.broker_id)
    except ApiError as error:
        return build.AllocateProducerIdsResponse(error_code=error.code)
    return build.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=end - first)
