"""The path of one request: header, handler, body, checks, then the answer or the controller's.

Bytes that are no request, and requests that nobody answers, end their connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias

from ottla.network.client_session import ClientSession
from ottla.network.connection import Part
from ottla.network.envelope import sender
from ottla.network.handlers import EndConnectionError, Handler, Handlers
from ottla.network.request_context import BrokerT, RequestContext
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.frames import (
    RequestHeader,
    read_request_body,
    read_request_header,
    write_response,
)
from ottla.protocol.messages import messages_of
from ottla.protocol.primitives import Buffer
from ottla.protocol.versions import API_VERSIONS, ENVELOPE, FOR_CONTROLLER

Check: TypeAlias = Callable[[Handler, Any, RequestContext[Any]], None]
"""Called with each decoded request before it is answered; raises EndConnectionError."""


class Forwarding(Protocol):
    """The way to the controller."""

    @property
    def is_controller(self) -> bool:
        """This broker is the controller."""

    async def forward(self, key: int, frame: Buffer, session: ClientSession) -> Buffer | None:
        """The controller's response to a request, without its size. None where this broker has
        become the controller. Raises EndConnectionError.
        """


class Dispatcher(Generic[BrokerT]):
    """Answers the requests of one broker."""

    def __init__(
        self,
        broker: BrokerT,
        handlers: Handlers,
        forwarding: Forwarding,
        checks: Sequence[Check] = (),
    ) -> None:
        """`checks` is where authorisation and quotas belong; there are none yet."""
        self.requests: Counter[int] = Counter()
        """How many came, by key."""
        self._broker = broker
        self._handlers = handlers
        self._forwarding = forwarding
        self._checks = tuple(checks)

    async def answer(self, frame: Buffer, session: ClientSession) -> list[Part]:
        """The parts of the response to the request in `frame`; none where none is due.

        Raises EndConnectionError.
        """
        try:
            header = read_request_header(frame)
            if header.key == ENVELOPE:
                return await self._answer_envelope(header, frame, session)
            return await self._answer(header, frame, session, may_forward=True)
        except DecodeError as error:
            raise EndConnectionError(str(error)) from None

    async def _answer(
        self, header: RequestHeader, frame: Buffer, session: ClientSession, *, may_forward: bool
    ) -> list[Part]:
        key, version = header.key, header.version
        handler = self._handlers.find(key)
        if handler is None:
            raise EndConnectionError(f"request key {key} is unknown")
        self.requests[key] += 1
        supported = handler.min_version <= version <= handler.max_version
        if not supported:
            if key != API_VERSIONS:
                raise EndConnectionError(f"request key {key} has no version {version} here")
            # An unsupported ApiVersions is answered in version 0, with what is supported, so
            # that the client can try again (KIP-511).
            version = 0
        context = RequestContext(
            self._broker, session, version, header.client_id, messages_of(key, version)
        )
        if handler.takes_json:
            body = bytes(frame[header.body_position :])
            for check in self._checks:
                check(handler, body, context)
            return _framed(header.correlation_id, await handler.answer(body, context))
        request = read_request_body(header, frame) if supported else None
        for check in self._checks:
            check(handler, request, context)
        if may_forward and key in FOR_CONTROLLER and not self._forwarding.is_controller:
            forwarded = await self._forwarding.forward(key, frame, session)
            if forwarded is not None:
                return [len(forwarded).to_bytes(4, "big"), forwarded]
        response = await handler.answer(request, context)
        return [] if response is None else write_response(response, header.correlation_id)

    async def _answer_envelope(
        self, header: RequestHeader, frame: Buffer, session: ClientSession
    ) -> list[Part]:
        """The request inside is answered here or nowhere: what another broker takes for the
        controller may have been deposed.
        """
        if header.version != 0:
            raise EndConnectionError(f"request key {ENVELOPE} has no version {header.version} here")
        envelope = read_request_body(header, frame)
        build = messages_of(ENVELOPE, 0)
        context = RequestContext(self._broker, session, 0, header.client_id, build)
        for check in self._checks:
            check(_ENVELOPE_HANDLER, envelope, context)
        if not self._forwarding.is_controller:
            response = build.EnvelopeResponse(error_code=ErrorCode.not_controller)
            return write_response(response, header.correlation_id)
        inside = read_request_header(envelope.request_data)
        if inside.key not in FOR_CONTROLLER:
            raise EndConnectionError(f"request key {inside.key} is not the controller's to answer")
        client = sender(envelope, session)
        parts = await self._answer(inside, envelope.request_data, client, may_forward=False)
        answer = b"".join(parts)[4:]
        response = build.EnvelopeResponse(response_data=answer, error_code=ErrorCode.none)
        return write_response(response, header.correlation_id)


def _framed(correlation_id: int, body: bytes) -> list[Part]:
    size = (4 + len(body)).to_bytes(4, "big")
    return [size + correlation_id.to_bytes(4, "big", signed=True) + body]


async def _not_dispatched(request: Any, context: RequestContext[Any]) -> Any:
    raise AssertionError("the dispatcher opens envelopes itself")


_ENVELOPE_HANDLER: Final = Handler(
    ENVELOPE,
    0,
    0,
    _not_dispatched,
    access=BETWEEN_BROKERS,
    is_between_brokers=lambda request: True,
)
