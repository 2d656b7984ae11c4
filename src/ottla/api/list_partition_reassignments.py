"""ListPartitionReassignments (key 46): reassignments under way (KIP-455); one broker has none."""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.call import Call

KEY: Final = 46


async def handle(request: Any, call: Call) -> Any:
    return call.messages.ListPartitionReassignmentsResponse()
