"""WriteShareGroupState (key 85, between brokers): what the leaders of partitions have changed.

KIP-932. v1 (KIP-1226): how many deliveries are complete.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_state import answers, check_epochs, from_brokers
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.share.record_state import stored_state
from ottla.share.share_partition import Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import NO_COUNT, ShareKey

KEY: Final = 85
ACCESS: Final = BETWEEN_BROKERS
is_between_brokers: Final = from_brokers

_COUNT: Final = VersionedField(KEY, "PartitionData", "delivery_complete_count", NO_COUNT)


async def handle(request: Any, context: Context) -> Any:
    async def write(key: ShareKey, asked: Any) -> dict[str, Any]:
        check_epochs(asked.leader_epoch, asked.state_epoch)
        batches = [_batch(each) for each in asked.state_batches]
        written = Write(asked.start_offset, _COUNT(asked), batches)
        coordinator = context.broker.shares.coordinator
        await coordinator.write(key, asked.state_epoch, asked.leader_epoch, written)
        return {}

    return context.messages.WriteShareGroupStateResponse(
        results=await answers(request, context, write, "WriteStateResult")
    )


def _batch(asked: Any) -> StateBatch:
    """Raises ApiError: INVALID_REQUEST for a batch that could not be read again."""
    first, last = asked.first_offset, asked.last_offset
    try:
        state = stored_state(asked.delivery_state)
    except ValueError as error:
        raise ApiError(ErrorCode.invalid_request, str(error)) from None
    if not 0 <= first <= last:
        raise ApiError(ErrorCode.invalid_request, f"A batch from offset {first} to {last}.")
    return StateBatch(first, last, state, asked.delivery_count)
