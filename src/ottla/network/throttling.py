"""Keeps clients within their quotas: answers at once, then mutes their connections (KIP-219).

A response says for how long its client is throttled (throttle_time_ms). A client that heeds it
sends nothing meanwhile; `Connection` takes no request of it, whether it heeds it or not. Brokers
have no quotas.

`request_percentage` counts the time in which this thread, which runs the event loop, works on a
client's requests: 100 is all of it. In Kafka 100 is one of several threads.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import fields
from functools import lru_cache
from types import coroutine as generator_coroutine
from typing import Any, Final, Protocol, TypeVar

from ottla.config import BrokerConfig
from ottla.network.client_session import ClientSession
from ottla.network.handlers import Handler
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import message_class
from ottla.protocol.primitives import Buffer
from ottla.protocol.versions import PRODUCE
from ottla.quotas.connections import ConnectionRates
from ottla.quotas.entity import Kind
from ottla.quotas.meters import Meters
from ottla.quotas.rate import Windows

PERCENT_A_NS: Final = 100 / 1e9
"""Of a second."""

T = TypeVar("T")


class Ticks(Protocol):
    """The clock, as far as it is needed here."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards."""


class Throttling:
    """The quotas of a broker's clients, and what they have used. For the event loop's thread."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Ticks,
        is_broker: Callable[[ClientSession], bool],
        elapsed_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """`elapsed_ns` measures the work on a request."""
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * 1000)
        self.is_on = False
        """Any user or client id has a quota. Without, requests are not even asked about."""
        self.meters = Meters(
            windows,
            Windows(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            ),
        )
        self.connections = ConnectionRates(windows)
        self.throttled: Counter[Kind] = Counter()
        """How often clients were throttled."""
        self._clock = clock
        self._is_broker = is_broker
        self.elapsed_ns = elapsed_ns

    def changed(self) -> None:
        """The quotas of users and client ids have changed."""
        self.is_on = self.meters.is_on

    def applies_to(self, session: ClientSession) -> bool:
        """Whether this client may be throttled at all."""
        return self.is_on and not self._is_broker(session)

    async def answer(
        self,
        handler: Handler,
        request: Any,
        context: RequestContext[Any],
        size_bytes: int,
        begun_ns: int,
    ) -> Any:
        """The handler's response with the time to wait, which the session has then, too.

        `size_bytes` is the request's, `begun_ns` when the work on it began.
        """
        session = context.session
        if not self.applies_to(session):
            return await handler.answer(request, context)
        user, client_id = session.principal.name, context.client_id
        meters, throttle_ms = self.meters, 0
        if meters.has(Kind.REQUEST, user, client_id):
            spent = _Spent(self.elapsed_ns, begun_ns)
            response = await _measured(handler.answer(request, context), spent)
            # A producer that wants no responses is not throttled for its time.
            if response is not None or handler.key != PRODUCE:
                now_ms, percent = self._clock.monotonic_ms(), spent.ns * PERCENT_A_NS
                throttle_ms = meters.use(Kind.REQUEST, user, client_id, percent, now_ms)
                self._count(Kind.REQUEST, throttle_ms)
        else:
            response = await handler.answer(request, context)
        if handler.key == PRODUCE:
            now_ms = self._clock.monotonic_ms()
            for_bytes_ms = meters.use(Kind.PRODUCE, user, client_id, size_bytes, now_ms)
            self._count(Kind.PRODUCE, for_bytes_ms)
            throttle_ms = max(throttle_ms, for_bytes_ms)
        if response is not None:
            own_ms = getattr(response, "throttle_time", None)
            if own_ms is not None and own_ms < throttle_ms:
                response = copy.copy(response)  # handlers may keep theirs
                response.throttle_time = throttle_ms
            throttle_ms = max(throttle_ms, own_ms or 0)
        session.throttle_ms = throttle_ms
        return response

    def forwarded(self, key: int, version: int, frame: Buffer, session: ClientSession) -> None:
        """The controller's response to a request is on its way to this client."""
        if self.applies_to(session):
            at = _offset_of_throttle(key, version)
            if at is not None:
                session.throttle_ms = int.from_bytes(frame[at : at + 4], "big", signed=True)

    def fetch(self, context: RequestContext[Any], size_bytes: int) -> tuple[int, bool]:
        """For how long a consumer is throttled that asks for so many bytes of records, and whether
        it gets them.
        """
        session = context.session
        user, client_id = session.principal.name, context.client_id
        now_ms = self._clock.monotonic_ms()
        throttle_ms, gets = self.meters.fetch(user, client_id, size_bytes, now_ms)
        self._count(Kind.FETCH, throttle_ms)
        return throttle_ms, gets

    def most_fetched_bytes(self, context: RequestContext[Any]) -> int | None:
        """What a consumer may get at once without being throttled; None without a limit."""
        return self.meters.most_bytes(context.session.principal.name, context.client_id)

    def mutations(self, context: RequestContext[Any], *, strict: bool) -> Mutations | None:
        """Charges a request that creates or deletes partitions; None if it has no quota.

        `strict`: its version knows THROTTLING_QUOTA_EXCEEDED.
        """
        session = context.session
        user, client_id = session.principal.name, context.client_id
        if not self.applies_to(session) or not self.meters.has(Kind.MUTATION, user, client_id):
            return None
        return Mutations(self, user, client_id, strict)

    def mutate(self, user: str, client_id: str, partitions: int, strict: bool) -> tuple[int, bool]:
        """See `Meters.mutate`."""
        now_ms = self._clock.monotonic_ms()
        throttle_ms, may = self.meters.mutate(user, client_id, partitions, now_ms, strict=strict)
        self._count(Kind.MUTATION, throttle_ms)
        return throttle_ms, may

    def connected(self, host: str) -> int:
        """For how long a new connection is kept before it is closed; 0 if it may stay."""
        if not self.connections.is_on:
            return 0
        throttle_ms = self.connections.opened(host, self._clock.monotonic_ms())
        self._count(Kind.CONNECTION, throttle_ms)
        return throttle_ms

    def _count(self, kind: Kind, throttle_ms: int) -> None:
        if throttle_ms:
            self.throttled[kind] += 1


class Mutations:
    """The partitions that one request creates or deletes."""

    def __init__(self, throttling: Throttling, user: str, client_id: str, strict: bool) -> None:
        self.throttle_ms = 0
        """For how long the client is throttled."""
        self._throttling = throttling
        self._user = user
        self._client_id = client_id
        self._strict = strict

    def charge(self, partitions: int) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED."""
        throttle_ms, may = self._throttling.mutate(
            self._user, self._client_id, partitions, self._strict
        )
        self.throttle_ms = max(self.throttle_ms, throttle_ms)
        if not may:
            raise ApiError(
                ErrorCode.throttling_quota_exceeded, "The throttling quota has been exceeded."
            )


class _Spent:
    """The time in which a request was worked on."""

    def __init__(self, elapsed_ns: Callable[[], int], begun_ns: int) -> None:
        self.ns = 0
        self._elapsed_ns = elapsed_ns
        self._begun_ns = begun_ns

    def begin(self) -> None:
        self._begun_ns = self._begun_ns or self._elapsed_ns()

    def pause(self) -> None:
        self.ns += self._elapsed_ns() - self._begun_ns
        self._begun_ns = 0


@generator_coroutine
def _measured(work: Awaitable[T], spent: _Spent) -> Generator[Any, Any, T]:
    """Awaits `work`, and measures its steps without the waits in between."""
    steps = work.__await__()
    sent: Any = None
    error: BaseException | None = None
    while True:
        spent.begin()
        try:
            waits_for = steps.send(sent) if error is None else steps.throw(error)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            spent.pause()
        error = None
        try:
            sent = yield waits_for
        except BaseException as thrown:  # noqa: BLE001 - passed on to the work
            error = thrown


@lru_cache(maxsize=256)
def _offset_of_throttle(key: int, version: int) -> int | None:
    """Where a response has its throttle_time_ms, after the correlation id and tags of its header;
    None if it is not the first field.
    """
    cls: Any = message_class(key, version, "response")
    first = next((each.name for each in fields(cls)), None)
    if first != "throttle_time":
        return None
    return 5 if cls.__flexible__ else 4
