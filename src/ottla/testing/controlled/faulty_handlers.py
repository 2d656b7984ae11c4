"""The broker's request handlers, each behind the faults of a `FaultScript`.

The seam is the table of handlers, which every node gets from outside (`network/handlers.py`). So
the broker's own code is the same with and without faults, and a broker without them pays nothing.
Requests between brokers, and those that a broker sends to itself, meet no fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from functools import cache, partial
from typing import Any, Final

from ottla.api.context import Context
from ottla.network.client_session import IN_PROCESS
from ottla.network.handlers import EndConnectionError, Handler, Handlers
from ottla.protocol.error_response import error_response
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import APIS, FETCH, INTERNAL, PRODUCE
from ottla.testing.controlled.fault_script import FaultScript
from ottla.testing.controlled.refused_fetch import refused_fetch
from ottla.testing.controlled.requested_topics import requested_topics
from ottla.testing.fault_rule import Effect, FaultRule

METADATA: Final = 3
_AUTO_CREATION: Final = 4
"""The first version of a Metadata request with this field."""


class FaultyHandlers:
    """For one broker. For the event loop's thread only."""

    def __init__(self, handlers: Handlers, script: FaultScript) -> None:
        self._script = script
        self._muted_until_s: dict[int, float] = {}
        """By connection: Kafka reads nothing from a throttled one (KIP-219)."""
        self._closing: asyncio.Future[None] | None = None
        self.handlers = handlers._replace(find=cache(partial(self._find, handlers.find)))

    def close(self) -> None:
        """End the connections whose requests wait for a response that never comes."""
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)

    def _find(self, find: Callable[[int], Handler | None], key: int) -> Handler | None:
        handler = find(key)
        if handler is None or key not in APIS or key in INTERNAL:
            return handler
        return handler._replace(answer=partial(self._answer, handler))

    async def _answer(self, handler: Handler, request: Any, context: Context) -> Any:
        # ApiVersions in an unknown version has no request.
        is_own = context.session is IN_PROCESS or request is None
        if is_own or handler.is_between_brokers(request):
            return await handler.answer(request, context)
        await self._muted(context)
        rule = self._script.meet(
            context.broker.clock.now_ms(),
            handler.key,
            context.version,
            context.client_id,
            requested_topics(request, context.broker),
        )
        if rule is None:
            return await handler.answer(request, context)
        response = await handler.answer(request, context) if rule.is_after else None
        return await self._affected(rule, response, handler, request, context)

    async def _affected(
        self, rule: FaultRule, response: Any, handler: Handler, request: Any, context: Context
    ) -> Any:
        """What the client gets; `response` is the handler's if it ran already."""
        if rule.effect is Effect.DISCONNECT:
            raise EndConnectionError("a fault of this test")
        if rule.effect is Effect.NO_RESPONSE:
            return await self._silence()
        if rule.effect is Effect.ERROR:
            if handler.key == PRODUCE and request.acks == 0:
                # No response can carry the error, so Kafka closes the connection.
                raise EndConnectionError("a fault of this test for a request with acks=0")
            return await _refusal(rule, handler, request, context)
        if rule.effect is Effect.DELAY:
            await asyncio.sleep(rule.wait_ms / 1000)
        if response is None:
            response = await handler.answer(request, context)
        if rule.effect is Effect.THROTTLE and response is not None:
            response.throttle_time = rule.wait_ms
            self._mute(context.session.connection_id, rule.wait_ms)
        return response

    async def _silence(self) -> None:
        """The connection stays open, and nothing comes any more."""
        loop = asyncio.get_running_loop()
        if self._closing is None:
            self._closing = loop.create_future()
        await asyncio.shield(self._closing)
        raise EndConnectionError("a fault of this test")

    def _mute(self, connection_id: int, for_ms: int) -> None:
        now_s = asyncio.get_running_loop().time()
        self._muted_until_s = {
            each: until_s for each, until_s in self._muted_until_s.items() if until_s > now_s
        }
        self._muted_until_s[connection_id] = now_s + for_ms / 1000

    async def _muted(self, context: Context) -> None:
        until_s = self._muted_until_s.get(context.session.connection_id)
        if until_s is not None:
            left_s = until_s - asyncio.get_running_loop().time()
            if left_s > 0:
                await asyncio.sleep(left_s)


async def _refusal(rule: FaultRule, handler: Handler, request: Any, context: Context) -> Any:
    code = ErrorCode(rule.error_code)
    if handler.key == FETCH and not rule.is_after:
        return refused_fetch(request, context, code, rule.topic)
    if handler.key == METADATA:
        return await _refused_metadata(handler, request, context, code, rule.topic)
    return error_response(request, code)


async def _refused_metadata(
    handler: Handler, request: Any, context: Context, code: ErrorCode, topic: str | None
) -> Any:
    """The brokers as they are, because clients need them, and the error for each topic."""
    if context.version >= _AUTO_CREATION:
        request.allow_auto_topic_creation = False
    response = await handler.answer(request, context)
    response.topics = tuple(
        _refused_topic(each, code) if topic in (None, each.name) else each
        for each in response.topics
    )
    return response


def _refused_topic(topic: Any, code: ErrorCode) -> Any:
    """A copy: the broker keeps each topic's part for later responses."""
    refused = copy(topic)
    refused.error_code = code
    refused.partitions = ()
    return refused
