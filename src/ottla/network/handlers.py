"""The rows of the dispatch table; `api` fills them in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from ottla.network.request_context import RequestContext
from ottla.protocol.access import Access

Answer: TypeAlias = Callable[[Any, RequestContext[Any]], Awaitable[Any]]


def never(request: Any) -> bool:
    """Only clients send requests of this type."""
    return False


def always(request: Any) -> bool:
    """Only brokers send requests of this type."""
    return True


class Handler(NamedTuple):
    """Answers one request type, in the versions `min_version` to `max_version`."""

    key: int
    min_version: int
    max_version: int
    answer: Answer
    """Takes request and context; returns the response message, or None if none is due (acks=0)."""
    takes_json: bool = False
    access: tuple[Access, ...] = ()
    """Its operations on resources, as Kafka authorizes them (KafkaApis, AuthHelper)."""
    is_between_brokers: Callable[[Any], bool] = never
    """Whether another broker sent this request: then it needs BETWEEN_BROKERS instead."""
    takes_turns: bool = False
    """Many clients send it at the same time: see `runtime.turns`."""
    check_here: Answer | None = None
    """Of a request for the controller, what this broker checks before it forwards it: returns the
    response that refuses it, or what is false."""


class Handlers(NamedTuple):
    """The dispatch table, handed to the broker so that it does not import `api`."""

    advertised: tuple[tuple[int, int, int], ...]
    """Key, first and last version: the response to ApiVersions."""
    find: Callable[[int], Handler | None]
    """The handler of a key; imported at first use."""
    authorized: Callable[[Handlers], Handlers] | None = None
    """These handlers, asked only for what a client may do."""


class EndConnectionError(Exception):
    """A request that must end its connection; the text gives the reason."""

    def __init__(
        self, reason: str, last: list[bytes | bytearray | memoryview] | None = None
    ) -> None:
        """`last` is what is still sent; given, even if empty, the log has the reason already."""
        super().__init__(reason)
        self.last = last
