"""The path of one request: header, handler, body, then answer it or forward it.

Invalid requests, and requests without a handler, end their connection.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Protocol

from ottla.network.client_session import ClientSession
from ottla.network.connection import Part
from ottla.network.envelope import sender
from ottla.network.handlers import EndConnectionError, Handler, Handlers, always, never
from ottla.network.request_context import BrokerT, RequestContext
from ottla.network.throttling import Throttling
from ottla.protocol.error_response import bare_error_response, error_response
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.frames import (
    BodyReader,
    RequestHeader,
    body_reader,
    read_request_body,
    read_request_header,
    write_response,
)
from ottla.protocol.message_budget import LOOP, MESSAGE, Budget, LongMessageError
from ottla.protocol.messages import messages_of
from ottla.protocol.primitives import Buffer
from ottla.protocol.versions import API_VERSIONS, APIS, ENVELOPE, FOR_CONTROLLER, INTERNAL
from ottla.runtime.cpu_thread import CpuThread
from ottla.runtime.garbage_collection import FULL_COLLECTIONS
from ottla.runtime.turns import Turns

_UNKNOWN_VERSION: Final = -1
_REFUSED: Final = ErrorCode.cluster_authorization_failed


class Forwarding(Protocol):
    """Forwards requests to the controller."""

    @property
    def is_controller(self) -> bool:
        """This broker is the controller."""

    async def forward(self, key: int, frame: Buffer, session: ClientSession) -> Buffer | None:
        """The controller's response to a request, without its size. None if this broker has
        become the controller. Raises EndConnectionError.
        """


class _Route:
    """Reads and answers the requests of one type in one version."""

    __slots__ = (
        "answer", "handler", "is_between_brokers", "is_for_controller", "may_be_between_brokers",
        "messages", "read", "takes_json", "takes_turns", "version",
    )  # fmt: skip

    def __init__(
        self,
        handler: Handler,
        version: int,
        read: BodyReader | None,
        is_for_controller: bool,
    ) -> None:
        """`read` is None if the version, and so the body format, is unknown."""
        self.handler = handler
        # Each request asks for these, and those of a named tuple take longer.
        self.answer = handler.answer
        self.takes_json = handler.takes_json
        self.takes_turns = handler.takes_turns
        self.version = version
        self.messages = messages_of(handler.key, version)
        self.read = read
        self.is_for_controller = is_for_controller
        self.is_between_brokers = handler.is_between_brokers is always
        self.may_be_between_brokers = handler.is_between_brokers not in (always, never)


def _nobody(session: ClientSession) -> bool:
    return False


class Dispatcher(Generic[BrokerT]):
    """Answers the requests of one broker."""

    def __init__(
        self,
        broker: BrokerT,
        handlers: Handlers,
        forwarding: Forwarding,
        *,
        cpu_thread: CpuThread,
        throttling: Throttling,
        is_broker: Callable[[ClientSession], bool] = _nobody,
    ) -> None:
        """`throttling` has the quotas; ACLs are asked by the handlers themselves
        (`api.authorized`). `cpu_thread` decodes and encodes long messages. `is_broker` says whether
        a broker of the cluster is at the other end: requests that only brokers send are refused to
        all others.
        """
        self._throttling = throttling
        self._is_broker = is_broker
        self.requests: Counter[int] = Counter()
        """The number of requests, by key."""
        self._broker = broker
        self._handlers = handlers
        self._forwarding = forwarding
        self.cpu_thread = cpu_thread
        self._turns = Turns()
        self._last: tuple[RequestHeader, ClientSession] | None = None
        """The request that was begun last, for the watchdog."""
        self._routes: dict[tuple[int, int], _Route] = {}
        """By key and version; unsupported versions have none."""

    async def answer(self, frame: Buffer, session: ClientSession) -> list[Part]:
        """Returns the parts of the response to the request in `frame`; empty if none is due.

        Raises EndConnectionError.
        """
        is_long = False
        try:
            header = read_request_header(frame)
            self._last = header, session
            key = header.key
            route = self._routes.get((key, header.version))
            if route is None:
                if key == ENVELOPE:
                    return await self._answer_envelope(header, frame, session)
                route = self._new_route(key, header.version)
            self.requests[key] += 1
            if route.is_between_brokers and not self._is_broker(session):
                return _refused(header, route.handler.takes_json)  # before anything is decoded
            if route.takes_turns:
                await self._turns.take()
            throttling = self._throttling
            has_quotas = throttling.is_on
            begun_ns = throttling.elapsed_ns() if has_quotas else 0
            try:
                request = self._read(route, header, frame, LOOP)
            except LongMessageError:
                is_long, begun_ns = True, 0
                FULL_COLLECTIONS.postpone()
                request = await self.cpu_thread.run(
                    partial(self._read, route, header, frame, MESSAGE)
                )
            if route.may_be_between_brokers and (
                route.handler.is_between_brokers(request) and not self._is_broker(session)
            ):
                refusal = await self.cpu_thread.run(partial(error_response, request, _REFUSED))
                parts = self._written(refusal, header.correlation_id)
                return parts or await self._write_long(refusal, header.correlation_id)
            context = self._context(route, header, session)
            if route.is_for_controller and not self._forwarding.is_controller:
                elsewhere = await self._answer_elsewhere(route, header, request, frame, context)
                if elsewhere is not None:
                    return elsewhere
            if has_quotas:
                response = await throttling.answer(
                    route.handler, request, context, len(frame), begun_ns
                )
            else:
                response = await route.answer(request, context)
            if response is None:
                return []
            if route.takes_json:
                return _framed(header.correlation_id, response)
            parts = self._written(response, header.correlation_id)
            return parts or await self._write_long(response, header.correlation_id)
        except DecodeError as error:
            raise EndConnectionError(str(error)) from None
        finally:
            if is_long:
                FULL_COLLECTIONS.resume()

    async def _answer_elsewhere(
        self,
        route: _Route,
        header: RequestHeader,
        request: Any,
        frame: Buffer,
        context: RequestContext[BrokerT],
    ) -> list[Part] | None:
        """The controller's answer, or the one of this broker that refuses the request; None if this
        broker has become the controller.
        """
        if route.handler.check_here is not None:
            refusal = await route.handler.check_here(request, context)
            if refusal:
                parts = self._written(refusal, header.correlation_id)
                return parts or await self._write_long(refusal, header.correlation_id)
        session = context.session
        forwarded = await self._forwarding.forward(header.key, frame, session)
        if forwarded is None:
            return None
        if self._throttling.is_on:
            self._throttling.forwarded(header.key, header.version, forwarded, session)
        return [len(forwarded).to_bytes(4, "big"), forwarded]

    def last_request(self) -> str:
        """For any thread: which request was begun last, of whom."""
        if self._last is None:
            return "none yet"
        header, session = self._last
        name = APIS[header.key].name if header.key in APIS else f"request key {header.key}"
        client = f" (client {header.client_id})" if header.client_id else ""
        return f"{name} version {header.version} from {session.host}{client}"

    @staticmethod
    def _read(route: _Route, header: RequestHeader, frame: Buffer, budget: Budget) -> Any:
        """The decoded request. Raises DecodeError, and LongMessageError if it is beyond `budget`,
        but for MESSAGE.
        """
        return None if route.read is None else route.read(frame, header.body_position, budget)

    @staticmethod
    def _written(response: Any, correlation_id: int) -> list[Part]:
        """The parts of a response; none if it is too long for the event loop: see `_write_long`."""
        try:
            return write_response(response, correlation_id, LOOP.elements)
        except LongMessageError:
            return []

    async def _write_long(self, response: Any, correlation_id: int) -> list[Part]:
        """The parts of a response with more elements than LOOP, encoded in a thread."""
        return await self.cpu_thread.run(partial(write_response, response, correlation_id))

    def _context(
        self, route: _Route, header: RequestHeader, session: ClientSession
    ) -> RequestContext[BrokerT]:
        context = session.contexts.get(route)
        if context is None or context.client_id != header.client_id:
            # Bounded: there are as many routes as request types in all their versions.
            context = session.contexts[route] = RequestContext(
                self._broker, session, route.version, header.client_id, route.messages
            )
        return context

    def _new_route(self, key: int, version: int) -> _Route:
        """Raises EndConnectionError if the key or version is not supported."""
        handler = self._handlers.find(key)
        if handler is None:
            raise EndConnectionError(f"request key {key} is unknown")
        if handler.min_version <= version <= handler.max_version:
            read = _read_json if handler.takes_json else body_reader(key, version)
            # Other brokers find the controller themselves.
            is_for_controller = key in FOR_CONTROLLER and key not in INTERNAL
            route = _Route(handler, version, read, is_for_controller)
        elif key == API_VERSIONS:
            # Answered in version 0 with the supported versions, so that the client can retry
            # (KIP-511).
            version = _UNKNOWN_VERSION
            route = self._routes.get((key, version)) or _Route(handler, 0, None, False)
        else:
            raise EndConnectionError(f"version {version} of request key {key} is not supported")
        self._routes[key, version] = route
        return route

    async def _answer_envelope(
        self, header: RequestHeader, frame: Buffer, session: ClientSession
    ) -> list[Part]:
        """Answers the request inside only if this broker is the controller; it is not forwarded
        again. The broker that the sender takes for the controller may have been deposed.
        """
        if header.version != 0:
            raise EndConnectionError(
                f"version {header.version} of request key {ENVELOPE} is not supported"
            )
        if not self._is_broker(session):
            return _refused(header, takes_json=False)
        envelope = read_request_body(header, frame)
        build = messages_of(ENVELOPE, 0)
        if not self._forwarding.is_controller:
            response = build.EnvelopeResponse(error_code=ErrorCode.not_controller)
            return write_response(response, header.correlation_id)
        inside = read_request_header(envelope.request_data)
        if inside.key not in FOR_CONTROLLER or inside.key in INTERNAL:
            raise EndConnectionError(
                f"request key {inside.key} is not a request for the controller"
            )
        client = sender(envelope, session)
        self.requests[inside.key] += 1
        route = self._routes.get((inside.key, inside.version)) or self._new_route(
            inside.key, inside.version
        )
        data = envelope.request_data
        try:
            request = self._read(route, inside, data, LOOP)
        except LongMessageError:
            request = await self.cpu_thread.run(partial(self._read, route, inside, data, MESSAGE))
        context = self._context(route, inside, client)
        throttling = self._throttling
        if throttling.is_on:
            # The broker that forwarded it mutes the client.
            answer = await throttling.answer(route.handler, request, context, len(data), 0)
        else:
            answer = await route.handler.answer(request, context)
        parts = self._written(answer, inside.correlation_id)
        parts = parts or await self._write_long(answer, inside.correlation_id)
        response = build.EnvelopeResponse(
            response_data=b"".join(parts)[4:], error_code=ErrorCode.none
        )
        return write_response(response, header.correlation_id)


def _refused(header: RequestHeader, takes_json: bool) -> list[Part]:
    if takes_json:
        return _framed(header.correlation_id, json.dumps({"error": _REFUSED.name}).encode())
    refusal = bare_error_response(header.key, header.version, _REFUSED)
    return write_response(refusal, header.correlation_id)


def _read_json(frame: Buffer, position: int, budget: Budget) -> bytes:
    return bytes(frame[position:])


def _framed(correlation_id: int, body: bytes) -> list[Part]:
    size = (4 + len(body)).to_bytes(4, "big")
    return [size + correlation_id.to_bytes(4, "big", signed=True) + body]
