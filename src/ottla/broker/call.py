"""What a request handler is given beside the request, and what a handler is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ottla.protocol.messages import Messages

if TYPE_CHECKING:
    from ottla.broker.node import Node


@dataclass(slots=True)
class Call:
    """One request under way: who asks, on which listener, in which version."""

    node: Node
    version: int
    client_id: str
    peer: str
    """The client's address, as Kafka shows it: "/127.0.0.1"."""
    listener: str
    """The listener's name; other brokers are named by their addresses of the same name."""
    listener_host: str
    """The host and port that this listener advertises; what Metadata answers."""
    listener_port: int
    messages: Messages
    """Builds the response in this request's version."""
    connection_id: int
    """Tells connections apart; fetch sessions and the journey use it."""


Answer: TypeAlias = Callable[[Any, Call], Awaitable[Any]]


class Handler(NamedTuple):
    """How one request type is answered; `min_version` to `max_version` are what works."""

    key: int
    min_version: int
    max_version: int
    answer: Answer
    """Request and call to response message, or None where no response is due (acks=0)."""
    takes_json: bool = False


class Handlers(NamedTuple):
    """The dispatch table, handed to the broker so that it need not import `api`."""

    advertised: tuple[tuple[int, int, int], ...]
    """Key, first and last version: the answer to ApiVersions."""
    find: Callable[[int], Handler | None]
    """The handler of a key; imported when first asked for."""


class EndConnectionError(Exception):
    """A request that can only be answered by ending its connection; the text says why."""
