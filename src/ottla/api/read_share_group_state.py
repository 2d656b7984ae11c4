"""ReadShareGroupState (key 84, between brokers): the leader of a partition takes a state over.

KIP-932. From then on the leader before it is fenced.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_state import answers, check_epochs, from_brokers
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.share.stored import ShareKey

KEY: Final = 84
ACCESS: Final = BETWEEN_BROKERS
is_between_brokers: Final = from_brokers


async def handle(request: Any, context: Context) -> Any:
    build = context.messages

    async def read(key: ShareKey, asked: Any) -> dict[str, Any]:
        check_epochs(asked.leader_epoch)
        state = await context.broker.shares.coordinator.read(key, asked.leader_epoch)
        return {
            "state_epoch": state.state_epoch,
            "start_offset": state.start_offset,
            "state_batches": tuple(
                build.StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.delivery_count,
                )
                for each in state.batches
            ),
        }

    return build.ReadShareGroupStateResponse(
        results=await answers(request, context, read, "ReadStateResult")
    )
