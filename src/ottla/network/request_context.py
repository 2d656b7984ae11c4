"""What a request handler gets in addition to the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ottla.network.client_session import ClientSession
from ottla.protocol.messages import Messages

BrokerT = TypeVar("BrokerT")


@dataclass(slots=True)
class RequestContext(Generic[BrokerT]):
    """The client and the version. Requests of one connection with the same values share it."""

    broker: BrokerT
    """The parts of the broker that handlers use; this room does not know which."""
    session: ClientSession
    version: int
    client_id: str
    """Empty if the client gave none."""
    messages: Messages
    """Builds the response in this request's version."""
