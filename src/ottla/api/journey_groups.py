"""JourneyGroups (key 20002, JSON): a broker asks another one for what it keeps about the groups of
a partition. See `ottla.tracing.group_answer`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import DecodeError
from ottla.tracing.group_answer import VERSION, answer_document, own_groups

ACCESS: Final = BETWEEN_BROKERS


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The response; raises DecodeError if the request is invalid."""
    topic, partition, offset = (request.get(name) for name in ("topic", "partition", "offset"))
    if request.get("journey_groups") != VERSION or not isinstance(topic, str):
        raise DecodeError("this is not a request of this version")
    if not isinstance(partition, int) or not isinstance(offset, int):
        raise DecodeError("`partition` and `offset` must be integers")
    known = await own_groups(topic, partition, offset, context.broker)
    return await asyncio.to_thread(answer_document, known)
