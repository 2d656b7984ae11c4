"""AllocateProducerIds (key 67, between brokers): a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import ApiError

KEY: Final = 67
ACCESS: Final = BETWEEN_BROKERS


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    try:
        first, end = await context.broker.controller.next_producer_ids(request.broker_id)
    except ApiError as error:
        return build.AllocateProducerIdsResponse(error_code=error.code)
    return build.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=end - first)
