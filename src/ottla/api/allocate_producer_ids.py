"""AllocateProducerIds (key 67, between brokers): ids for one broker to give out (KIP-730)."""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.call import Call
from ottla.protocol.errors import ApiError

KEY: Final = 67


async def handle(request: Any, call: Call) -> Any:
    build = call.messages
    try:
        first, end = await call.node.controller.next_producer_ids(request.broker_id)
    except ApiError as error:
        return build.AllocateProducerIdsResponse(error_code=error.code)
    return build.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=end - first)
