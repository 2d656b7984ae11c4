"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

v1 (KIP-994): filter by duration. v2 (KIP-1152): filter by a pattern of the id. Transactions are not
supported yet, so the list is empty; state filters that Kafka does not know are returned.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource

KEY: Final = 66
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),)

STATES: Final = frozenset(
    {
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
        *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
    }
)


async def handle(request: Any, context: Context) -> Any:
    unknown = tuple(state for state in request.state_filters if state not in STATES)
    return context.messages.ListTransactionsResponse(unknown_state_filters=unknown)
