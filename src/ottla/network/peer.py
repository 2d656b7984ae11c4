"""A connection to another broker: requests out, responses matched by correlation id.

One broker sends requests and the other answers them in order, as with a client. A Peer connects at
first use and again after a loss; the caller decides when to retry. A request that is not answered
in time ends the connection, as in Kafka's NetworkClient: the requests after it would not be
answered either.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from socket import SOCK_STREAM
from struct import Struct
from typing import Any, Final

from ottla.network.broker_identity import Ask, NotProvenError
from ottla.network.frame_protocol import FrameProtocol
from ottla.network.frame_reader import FrameReader
from ottla.network.peer_security import NO_SECURITY, Login, PeerSecurity, log_in
from ottla.network.token_source import TokenSource
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.primitives import Buffer
from ottla.protocol.sasl_client import SaslError
from ottla.protocol.versions import BROKER_PROOF

CONNECT_TIMEOUT_MS: Final = 10_000
"""Kafka's default of socket.connection.setup.timeout.ms."""
PROBE_WITHIN_MS: Final = 500
MAX_UNDER_WAY: Final = 100
"""Limit of unanswered requests on one connection."""
SCRATCH_BYTES: Final = 64 << 10
RENEWED_AFTER: Final = 0.85
"""Of the lifetime that another broker gave a session, as Kafka's clients."""
LAST_CORRELATION_ID: Final = 2**31 - 1

_JSON_HEADER: Final = Struct(">hhih")
_SIZE: Final = Struct(">i")


class PeerError(Exception):
    """No response; the one-line text gives the reason. The request may have taken effect."""


class Probe(Enum):
    """What a connection attempt has shown about a listener."""

    ALIVE = "alive"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """No answer at all: it may be alive, but cut off."""


async def probe(host: str, port: int, timeout_ms: int = PROBE_WITHIN_MS) -> Probe:
    """Whether the address accepts connections. Sends nothing."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            transport, _ = await _connect(host, port, asyncio.Protocol)
    except ConnectionRefusedError:
        return Probe.REFUSED
    except OSError:  # TimeoutError is one of them
        return Probe.UNKNOWN
    transport.abort()
    return Probe.ALIVE


async def _connect(
    host: str,
    port: int,
    factory: Callable[[], asyncio.BaseProtocol],
    tls: ssl.SSLContext | None = None,
) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
    """Tries each address of the host. Raises OSError; ConnectionRefusedError only if every address
    refused. asyncio's own error for several addresses does not show that.
    """
    loop = asyncio.get_running_loop()
    failure: OSError = OSError(f"{host} has no address")
    for *_, address in await loop.getaddrinfo(host, port, type=SOCK_STREAM):
        try:
            transport, protocol = await loop.create_connection(
                factory,
                str(address[0]),
                int(address[1]),
                ssl=tls,
                server_hostname=None if tls is None else host,
            )
        except ssl.SSLError:
            raise
        except ConnectionRefusedError as error:
            if failure.errno is None:
                failure = error
        except OSError as error:
            failure = error
        else:
            return transport, protocol
    raise failure


class _Link:
    """One TCP connection; each frame of its stream is the response to a request."""

    def __init__(
        self, address: tuple[str, int], max_frame_bytes: int, lost: Callable[[_Link, str], None]
    ) -> None:
        self.address = address
        self.waiting: dict[int, asyncio.Future[memoryview]] = {}
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self.renew_at: float | None = None
        """When another connection should take its place, on the loop's clock."""
        self._is_retired = False
        self._max_frame_bytes = max_frame_bytes
        self._lost = lost

    def new_protocol(self) -> FrameProtocol:
        reader = FrameReader(min_bytes=_SIZE.size, max_bytes=self._max_frame_bytes)
        return FrameProtocol(memoryview(bytearray(SCRATCH_BYTES)), reader, self._connected)

    def _connected(self, transport: asyncio.Transport) -> _Link:
        self.transport = transport
        return self

    def lost(self, error: Exception | None) -> None:
        self.end("closed the connection" if error is None else f"lost the connection: {error}")

    def pause_writing(self) -> None:
        """Ignored: requests to other brokers are small, and their number is limited."""

    def resume_writing(self) -> None:
        """See `pause_writing`."""

    def end(self, why: str) -> None:
        """Ends the connection. Waiting requests fail with the reason."""
        if self.ended:
            return
        self.ended = True
        if self.transport is not None:
            self.transport.abort()
        self._lost(self, why)

    def retire(self) -> None:
        """Ends the connection once its requests have been answered."""
        self._is_retired = True
        if not self.waiting:
            self.end("is done")

    def refused(self, size_bytes: int) -> None:
        self.end(f"sent a response of {size_bytes} bytes")

    def received(self, frames: list[Buffer]) -> None:
        for frame in frames:
            (correlation_id,) = _SIZE.unpack_from(frame)
            waiter = self.waiting.pop(correlation_id, None)
            if waiter is None:
                self.end(f"answered request {correlation_id}, which was not sent")
                return
            if not waiter.done():  # otherwise its caller was cancelled
                waiter.set_result(memoryview(frame))
        if self._is_retired and not self.waiting:
            self.end("is done")


class Peer:
    """Sends requests to one broker; created by Peers. For the event loop's thread only."""

    def __init__(
        self,
        name: str,
        address: Callable[[], tuple[str, int] | None],
        client_id: str,
        *,
        max_frame_bytes: int,
        security: PeerSecurity = NO_SECURITY,
        introduce: Callable[[Ask], Awaitable[None]] | None = None,
    ) -> None:
        """Errors contain `name` ("broker 2"); `address` returns the current address. `introduce`
        is called with each new connection, before anything else is sent on it.
        """
        self._introduce = introduce
        self.name = name
        self.client_id = client_id
        self._security = security
        self._address = address
        self._max_frame_bytes = max_frame_bytes
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._last_correlation_id = 0
        self._closed = False
        self.lost_at: float | None = None
        """When the connection was last lost, on the loop's clock; None once a response has come
        since. A killed process may still accept a connection while the system closes its sockets.
        """

    async def ask(self, request: Any, timeout_ms: int) -> Any:
        """Returns the response to a kio message. Its `records` are views into the frame.

        Raises PeerError.
        """

        def framed(correlation_id: int) -> list[Buffer]:
            return [write_request(request, correlation_id, self.client_id)]

        frame = await self._ask(framed, timeout_ms)
        try:
            _, response = read_response(request.__api_key__, request.__version__, frame)
        except DecodeError as error:
            self._end(f"sent an invalid response: {error}")
            raise PeerError(f"{self.name} sent an invalid response: {error}") from None
        return response

    async def ask_json(self, key: int, document: Any, timeout_ms: int) -> dict[str, Any]:
        """Sends one of Ottla's own requests: header v1, then JSON. The response is JSON, too.

        Raises PeerError.
        """
        frame = await self._ask(self._framed_json(key, document), timeout_ms)
        return self._read_json(frame)

    def _framed_json(self, key: int, document: Any) -> Callable[[int], list[Buffer]]:
        client_id = self.client_id.encode()
        body = json.dumps(document, separators=(",", ":")).encode()

        def framed(correlation_id: int) -> list[Buffer]:
            header = _JSON_HEADER.pack(key, 0, correlation_id, len(client_id)) + client_id
            return [_SIZE.pack(len(header) + len(body)) + header, body]

        return framed

    def _read_json(self, frame: memoryview) -> dict[str, Any]:
        """Raises PeerError."""
        try:
            answer = json.loads(bytes(frame[_SIZE.size :]))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self._end("sent a response that is not a JSON document")
            raise PeerError(f"{self.name} sent a response that is not a JSON document")
        return answer

    async def _ask(self, framed: Callable[[int], list[Buffer]], timeout_ms: int) -> memoryview:
        link: _Link | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                link = await self._connected()
                frame = await self._send(link, framed)
        except TimeoutError:
            if link is not None:
                link.end(f"did not answer within {timeout_ms} ms")
            raise PeerError(f"{self.name} did not answer within {timeout_ms} ms") from None
        if self._link is link:
            self.lost_at = None
        return frame

    def _send(self, link: _Link, framed: Callable[[int], list[Buffer]]) -> Awaitable[memoryview]:
        if len(link.waiting) >= MAX_UNDER_WAY:
            raise PeerError(f"{self.name} already has {MAX_UNDER_WAY} unanswered requests")
        assert link.transport is not None
        if link.transport.is_closing():
            raise PeerError(f"{self.name} closed the connection")
        waiter: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        correlation_id = self._next_correlation_id()
        link.waiting[correlation_id] = waiter
        link.transport.writelines(framed(correlation_id))
        return waiter

    def _next_correlation_id(self) -> int:
        self._last_correlation_id = self._last_correlation_id % LAST_CORRELATION_ID + 1
        return self._last_correlation_id

    async def _connected(self) -> _Link:
        if self._closed:
            raise PeerError(f"the connection to {self.name} is closed")
        address = self._address()
        link = self._link
        if link is not None:
            if address is not None and link.address != address:
                link.end("moved to another address")
            elif link.renew_at is None or asyncio.get_running_loop().time() < link.renew_at:
                return link
            else:
                self._link = None
                link.retire()
        if address is None:
            raise PeerError(f"{self.name} is not registered")
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect(address))
            self._connecting.add_done_callback(self._connect_ended)
        # Many callers may wait for it; the first to give up must not cancel it for the others.
        return await asyncio.shield(self._connecting)

    async def _connect(self, address: tuple[str, int]) -> _Link:
        where = f"{self.name} at {address[0]}:{address[1]}"
        link = _Link(address, self._max_frame_bytes, self._lost)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                tls = self._security.tls
                context = None if tls is None else tls.context()
                await _connect(*address, link.new_protocol, context)
                if self._security.login is not None and not link.ended:
                    await self._log_in(link, self._security.login)
                if self._introduce is not None and not link.ended:
                    await self._introduce(partial(self._ask_proof, link))
        except ConnectionRefusedError:
            raise PeerError(f"{where} refused the connection") from None
        except NotProvenError as error:
            link.end("is not connected: nothing is proven")
            raise PeerError(f"{where}: {error}") from None
        except (SaslError, DecodeError) as error:
            link.end("refused this broker")
            raise PeerError(f"{where} refused this broker: {error}") from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or str(error)
            raise PeerError(f"no TLS with {where}: {reason}") from None
        except TimeoutError:
            link.end("did not let this broker in")
            raise PeerError(f"{where} cannot be reached within {CONNECT_TIMEOUT_MS} ms") from None
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise PeerError(f"{where} cannot be reached: {reason}") from None
        if self._closed:
            link.end("was disconnected by this broker")
            raise PeerError(f"the connection to {self.name} is closed")
        if link.ended:
            raise PeerError(f"{where} closed the connection at once")
        self._link = link
        return link

    async def _log_in(self, link: _Link, login: Login | TokenSource) -> None:
        """Raises SaslError, and PeerError."""

        async def send(request: Any) -> Any:
            def framed(correlation_id: int) -> list[Buffer]:
                return [write_request(request, correlation_id, self.client_id)]

            frame = await self._send(link, framed)
            return read_response(request.__api_key__, request.__version__, frame)[1]

        lifetime_ms = await log_in(login, send)
        if lifetime_ms:
            lasts_s = lifetime_ms / 1000 * RENEWED_AFTER
            link.renew_at = asyncio.get_running_loop().time() + lasts_s

    async def _ask_proof(self, link: _Link, document: dict[str, Any]) -> dict[str, Any]:
        return self._read_json(await self._send(link, self._framed_json(BROKER_PROOF, document)))

    def _connect_ended(self, task: asyncio.Task[_Link]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # marked as retrieved: all callers may have given up

    def _lost(self, link: _Link, why: str) -> None:
        if self._link is link:
            self._link = None
            if not self._closed:
                self.lost_at = asyncio.get_running_loop().time()
        waiting, link.waiting = link.waiting, {}
        for waiter in waiting.values():
            if not waiter.done():
                waiter.set_exception(PeerError(f"{self.name} {why}"))
                waiter.exception()  # marked as retrieved: the caller may have given up

    def _end(self, why: str) -> None:
        if self._link is not None:
            self._link.end(why)

    def close(self) -> None:
        """Closes for good. Waiting requests fail with a PeerError."""
        self._closed = True
        self._end("was disconnected by this broker")
