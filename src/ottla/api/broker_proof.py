"""BrokerProof (key 20003, JSON): a broker proves which one it is. See `network.broker_identity`."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access

ACCESS: Final[tuple[Access, ...]] = ()
"""The proof is the permission."""


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    return await context.broker.identity.answer(request, context.session)
