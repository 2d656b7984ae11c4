"""Whether a request that only brokers may send comes from the broker that it names."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.error_response import error_response
from ottla.protocol.errors import ErrorCode

REFUSED: Final = ErrorCode.cluster_authorization_failed


def is_from_broker(context: Context, broker_id: int) -> bool:
    """Whether that broker sent it, or this broker itself."""
    session = context.session
    return session.is_own or (session.broker_id == broker_id and context.broker.is_broker(session))


async def refused(request: Any, context: Context) -> Any:
    """The response, made in a thread: it names all that the request names."""
    return await context.broker.cpu_thread.run(partial(error_response, request, REFUSED))


def is_from_any_broker(context: Context) -> bool:
    """Whether a broker of the cluster sent it."""
    return context.broker.is_broker(context.session)
