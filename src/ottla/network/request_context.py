"""What a request handler is given beside the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ottla.network.client_session import ClientSession
from ottla.protocol.messages import Messages

BrokerT = TypeVar("BrokerT")


@dataclass(slots=True)
class RequestContext(Generic[BrokerT]):
    """Who asks, in which version. Requests of one connection that agree in this share a context."""

    broker: BrokerT
    """The parts of the broker that handlers use; this room does not know which."""
    session: ClientSession
    version: int
    client_id: str
    """Empty where the client gave none."""
    messages: Messages
    """Builds the response in this request's version."""
