"""A request that a broker sends to itself: its own handler answers it, without a connection."""

from __future__ import annotations

from typing import Any

from ottla.network.client_session import IN_PROCESS
from ottla.network.handlers import Handlers
from ottla.network.request_context import BrokerT, RequestContext
from ottla.protocol.messages import messages_of


async def answer_own(broker: BrokerT, handlers: Handlers, request: Any, client_id: str) -> Any:
    """The response to a request message."""
    key, version = request.__api_key__, request.__version__
    handler = handlers.find(key)
    assert handler is not None, key
    context = RequestContext(broker, IN_PROCESS, version, client_id, messages_of(key, version))
    return await handler.answer(request, context)
