"""The listener: accepts connections, finds each request's handler, and ends what lies idle."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.broker.call import Call, EndConnectionError, Handlers
from ottla.broker.connection import Connection
from ottla.broker.connection_limits import ConnectionLimits
from ottla.broker.forwarding import forward
from ottla.config.listener import Endpoint
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import API_VERSIONS, FOR_CONTROLLER

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.server")

SCRATCH_BYTES = 256 << 10
IDLE_SWEEP_MS = 30_000


class Server:
    """One listener of a node. All its connections read into one scratch buffer, in turn."""

    def __init__(
        self, node: Node, handlers: Handlers, endpoint: Endpoint, limits: ConnectionLimits
    ) -> None:
        self.node = node
        self.endpoint = endpoint
        self.advertised = next(
            (each for each in node.config.advertised_endpoints if each.name == endpoint.name), None
        )
        self.port = 0
        self.config = node.config
        self.clock = node.clock
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._handlers = handlers
        self._connections: dict[int, Connection] = {}
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self.requests: Counter[int] = Counter()

    async def listen(self) -> None:
        """Binds; `port` is the real one then, which the system chose where 0 was asked for.

        Raises OSError, one sentence for people, where the address cannot be had.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self),
                # One socket for every interface where the port is free to choose: two would differ.
                self.endpoint.host or (None if self.endpoint.port else "0.0.0.0"),
                self.endpoint.port,
                backlog=self.config.socket_listen_backlog_size,
                start_serving=False,
            )
        except OSError as error:
            # asyncio's own text begins with the number of the error and says it twice.
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise OSError(
                f"cannot listen on {self.endpoint.host or '*'}:{self.endpoint.port}: {reason}."
                " Give another address with --listen HOST:PORT"
            ) from None
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self.end_idle)
        self.port = self._server.sockets[0].getsockname()[1]

    async def start(self) -> None:
        assert self._server is not None
        await self._server.start_serving()

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._sweep is not None:
            self._sweep.cancel()

    async def close(self, grace_ms: int) -> None:
        """Stops accepting, lets requests under way finish for `grace_ms`, ends the connections."""
        self.stop_accepting()
        until_ms = self.clock.monotonic_ms() + grace_ms
        while any(each.is_busy for each in self._connections.values()):
            if self.clock.monotonic_ms() >= until_ms:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections.values()):
            connection.close()

    def opened(self, connection: Connection) -> None:
        connection.connection_id = self.node.next_connection_id()
        connection.active_ms = self.clock.monotonic_ms()
        self._connections[connection.connection_id] = connection
        reason = self._limits.admit(connection.host)
        if reason is not None:
            refused = self._limits.refused
            if refused & (refused - 1) == 0:  # the 1st, 2nd, 4th, 8th ... of them
                logger.warning(
                    "refused %d connections, now of %s: %s", refused, connection.host, reason
                )
            connection.close()

    def size_buffers(self, accepted: socket.socket) -> None:
        """socket.send.buffer.bytes and socket.receive.buffer.bytes, where they are given."""
        for option, size_bytes in (
            (socket.SO_SNDBUF, self.config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, self.config.socket_receive_buffer_bytes),
        ):
            if size_bytes >= 0:
                accepted.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    def closed(self, connection: Connection) -> None:
        if self._connections.pop(connection.connection_id, None) is not None:
            self._limits.release(connection.host)

    def end_idle(self) -> None:
        before_ms = self.clock.monotonic_ms() - self.config.connections_max_idle_ms
        for connection in list(self._connections.values()):
            if connection.is_idle(before_ms):
                connection.close()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self.end_idle)

    async def answer(self, frame: memoryview, connection: Connection) -> list[Any]:
        """The parts of the response to the request in `frame`; none where none is due."""
        try:
            header = read_request_header(frame)
            handler = self._handlers.find(header.key)
            if handler is None:
                connection.refuse(f"request key {header.key} is unknown")
                return []
            self.requests[header.key] += 1
            version = header.version
            supported = handler.min_version <= version <= handler.max_version
            if not supported:
                if header.key != API_VERSIONS:
                    connection.refuse(f"request key {header.key} has no version {version} here")
                    return []
                # An unsupported ApiVersions is answered in version 0, with what is supported, so
                # that the client can try again (KIP-511).
                version = 0
            if header.key in FOR_CONTROLLER and supported and not self.node.controller.active:
                forwarded = await forward(self.node, frame, header)
                if forwarded is not None:
                    return forwarded
            call = self._call(header.key, version, header.client_id, connection)
            if handler.takes_json:
                body = bytes(frame[header.body_position :])
                return await self._answer_json(handler.answer, body, header.correlation_id, call)
            request = read_request_body(header, frame) if supported else None
        except DecodeError as error:
            connection.refuse(str(error))
            return []
        except EndConnectionError as end:
            connection.refuse(str(end))
            return []
        try:
            response = await handler.answer(request, call)
        except EndConnectionError as end:
            connection.refuse(str(end))
            return []
        return [] if response is None else write_response(response, header.correlation_id)

    def _call(self, key: int, version: int, client_id: str, connection: Connection) -> Call:
        host, port = self._advertised(connection)
        return Call(
            node=self.node,
            version=version,
            client_id=client_id,
            peer=f"/{connection.host}",
            listener=self.endpoint.name,
            listener_host=host,
            listener_port=port,
            messages=messages_of(key, version),
            connection_id=connection.connection_id,
        )

    @property
    def bound_to(self) -> Endpoint:
        """Where it listens, with the real port."""
        return replace(self.endpoint, port=self.port)

    @property
    def reached_at(self) -> Endpoint:
        """What this listener is registered with: advertised or bound, with the real port."""
        address = self.advertised or self.endpoint
        return replace(address, port=address.port or self.port)

    def _advertised(self, connection: Connection) -> tuple[str, int]:
        """Where clients of this listener find the broker.

        Without advertised.listeners, a listener on every interface answers with the address on
        which this very client came: no other host name is as sure to work for it.
        """
        if self.advertised is not None:
            return self.advertised.host, self.advertised.port or self.port
        if not self.endpoint.every_interface:
            return self.endpoint.host, self.port
        assert connection.transport is not None
        return str(connection.transport.get_extra_info("sockname")[0]), self.port

    async def _answer_json(
        self, answer: Any, body: bytes, correlation_id: int, call: Call
    ) -> list[Any]:
        reply: bytes = await answer(body, call)
        size = (4 + len(reply)).to_bytes(4, "big")
        return [size + correlation_id.to_bytes(4, "big", signed=True) + reply]
