"""The listener: accepts connections, finds each request's handler, and ends what lies idle."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import TYPE_CHECKING, Any

from ottla.broker.call import Call, EndConnectionError, Handlers
from ottla.broker.connection import Connection
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import API_VERSIONS

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.server")

SCRATCH_BYTES = 256 << 10
BACKLOG = 1024
IDLE_SWEEP_MS = 30_000
FILES_FOR_CONNECTIONS = 0.75
"""The part of the process's open-file limit that connections may take; the rest is for the log."""


class Server:
    """One listener of a node. All its connections read into one scratch buffer, in turn."""

    def __init__(self, node: Node, handlers: Handlers) -> None:
        self.node = node
        self.config = node.config
        self.clock = node.clock
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._handlers = handlers
        self._connections: dict[int, Connection] = {}
        self._next_id = 0
        self._refused = 0
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_connections = min(
            node.config.max_connections, int(files * FILES_FOR_CONNECTIONS)
        )
        self.requests = 0

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Binds and returns the address bound. Raises OSError where that cannot be."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), host, port, backlog=BACKLOG, start_serving=False
        )
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self._end_idle)
        bound = self._server.sockets[0].getsockname()
        return bound[0], bound[1]

    async def start(self) -> None:
        assert self._server is not None
        await self._server.start_serving()

    async def close(self, grace_ms: int) -> None:
        """Stops accepting, lets requests under way finish for `grace_ms`, ends the connections."""
        if self._server is not None:
            self._server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        until_ms = self.clock.monotonic_ms() + grace_ms
        while any(each.is_busy for each in self._connections.values()):
            if self.clock.monotonic_ms() >= until_ms:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections.values()):
            connection.close()

    def opened(self, connection: Connection) -> None:
        self._next_id += 1
        connection.connection_id = self._next_id
        connection.active_ms = self.clock.monotonic_ms()
        self._connections[self._next_id] = connection
        if len(self._connections) > self._most_connections:
            self._refused += 1
            if self._refused & (self._refused - 1) == 0:  # the 1st, 2nd, 4th, 8th ...
                logger.warning(
                    "refused %d connections, the last of %s: %d are open, the most allowed"
                    " (max.connections, and the limit of open files)",
                    self._refused, connection.peer, self._most_connections,
                )  # fmt: skip
            connection.close()

    def closed(self, connection: Connection) -> None:
        self._connections.pop(connection.connection_id, None)
        self.node.connection_closed(connection.connection_id)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def _end_idle(self) -> None:
        before_ms = self.clock.monotonic_ms() - self.config.connections_max_idle_ms
        for connection in list(self._connections.values()):
            if connection.active_ms < before_ms and not connection.is_busy:
                connection.close()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self._end_idle)

    async def answer(self, frame: memoryview, connection: Connection) -> list[Any]:
        """The parts of the response to the request in `frame`; none where none is due."""
        self.requests += 1
        try:
            header = read_request_header(frame)
            handler = self._handlers.find(header.key)
            if handler is None:
                connection.refuse(f"request key {header.key} is unknown")
                return []
            version = header.version
            supported = handler.min_version <= version <= handler.max_version
            if not supported:
                if header.key != API_VERSIONS:
                    connection.refuse(f"request key {header.key} has no version {version} here")
                    return []
                # An unsupported ApiVersions is answered in version 0, with what is supported, so
                # that the client can try again (KIP-511).
                version = 0
            call = self._call(header.key, version, header.client_id, connection)
            if handler.takes_json:
                body = bytes(frame[header.body_position :])
                return await self._answer_json(handler.answer, body, header.correlation_id, call)
            request = read_request_body(header, frame) if supported else None
        except DecodeError as error:
            connection.refuse(str(error))
            return []
        try:
            response = await handler.answer(request, call)
        except EndConnectionError as end:
            connection.refuse(str(end))
            return []
        return [] if response is None else write_response(response, header.correlation_id)

    def _call(self, key: int, version: int, client_id: str, connection: Connection) -> Call:
        host, port = self.node.advertised
        return Call(
            node=self.node,
            version=version,
            client_id=client_id,
            peer=connection.peer,
            listener_host=host,
            listener_port=port,
            messages=messages_of(key, version),
            connection_id=connection.connection_id,
        )

    async def _answer_json(
        self, answer: Any, body: bytes, correlation_id: int, call: Call
    ) -> list[Any]:
        reply: bytes = await answer(body, call)
        size = (4 + len(reply)).to_bytes(4, "big")
        return [size + correlation_id.to_bytes(4, "big", signed=True) + reply]
