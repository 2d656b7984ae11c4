"""How requests are answered: the dispatch table's rows, filled in by the room of the handlers."""

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
    """How one request type is answered; `min_version` to `max_version` are what works."""

    key: int
    min_version: int
    max_version: int
    answer: Answer
    """Request and context to response message, or None where no response is due (acks=0)."""
    takes_json: bool = False
    access: tuple[Access, ...] = ()
    """What it may do to which resources, as Kafka's authorizer has it (KafkaApis, AuthHelper).
    Nothing checks it yet.
    """
    is_between_brokers: Callable[[Any], bool] = never
    """Whether another broker sent this request: then it needs BETWEEN_BROKERS instead."""


class Handlers(NamedTuple):
    """The dispatch table, handed to the broker so that it need not import `api`."""

    advertised: tuple[tuple[int, int, int], ...]
    """Key, first and last version: the answer to ApiVersions."""
    find: Callable[[int], Handler | None]
    """The handler of a key; imported when first asked for."""


class EndConnectionError(Exception):
    """A request that can only be answered by ending its connection; the text says why."""
