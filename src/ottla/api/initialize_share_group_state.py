"""InitializeShareGroupState (key 83, between brokers): states of share partitions begin.

KIP-932. From the coordinator of the group, when it first assigns a partition, and when the group's
offsets are altered.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_state import answers, check_epochs, from_brokers
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.share.stored import ShareKey

KEY: Final = 83
ACCESS: Final = BETWEEN_BROKERS
is_between_brokers: Final = from_brokers


async def handle(request: Any, context: Context) -> Any:
    async def initialize(key: ShareKey, asked: Any) -> dict[str, Any]:
        check_epochs(0, asked.state_epoch)
        coordinator = context.broker.shares.coordinator
        await coordinator.initialize(key, asked.state_epoch, asked.start_offset)
        return {}

    return context.messages.InitializeShareGroupStateResponse(
        results=await answers(request, context, initialize, "InitializeStateResult")
    )
