"""DeleteShareGroupState (key 86, between brokers): the states of share partitions end (KIP-932)."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_state import answers, from_brokers
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.share.stored import ShareKey

KEY: Final = 86
ACCESS: Final = BETWEEN_BROKERS
is_between_brokers: Final = from_brokers


async def handle(request: Any, context: Context) -> Any:
    async def delete(key: ShareKey, asked: Any) -> dict[str, Any]:
        await context.broker.shares.coordinator.delete(key)
        return {}

    return context.messages.DeleteShareGroupStateResponse(
        results=await answers(request, context, delete, "DeleteStateResult")
    )
