"""ReadShareGroupStateSummary (key 87, between brokers): where share partitions stand (KIP-932).

v1 (KIP-1226): how many deliveries are complete.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_state import answers, from_brokers
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.share.stored import ShareKey

KEY: Final = 87
ACCESS: Final = BETWEEN_BROKERS
is_between_brokers: Final = from_brokers


async def handle(request: Any, context: Context) -> Any:
    async def summary(key: ShareKey, asked: Any) -> dict[str, Any]:
        found = await context.broker.shares.coordinator.summary(key)
        return found._asdict()

    return context.messages.ReadShareGroupStateSummaryResponse(
        results=await answers(request, context, summary, "ReadStateSummaryResult")
    )
