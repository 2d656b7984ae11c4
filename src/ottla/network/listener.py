"""One listener of a broker: accepts connections, and ends idle ones."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ottla.config import BrokerConfig, ConfigError
from ottla.config.broker_websocket import ANY_ORIGIN
from ottla.config.listener import Endpoint
from ottla.config.listener_security import ListenerSecurity, tls_options
from ottla.network.admission import Admission
from ottla.network.authentication import Authentication
from ottla.network.client_session import ClientSession
from ottla.network.connection import Answer, Connection
from ottla.network.connection_limits import ConnectionLimits
from ottla.network.dispatcher import Dispatcher
from ottla.network.entrance import Entrance
from ottla.network.frame_protocol import FrameProtocol
from ottla.network.frame_reader import FrameReader
from ottla.network.json_session import JsonSession
from ottla.network.newcomers import AUTHENTICATED_WITHIN_MS, Newcomers
from ottla.network.refusals import Refusals
from ottla.network.sasl_offer import NOBODY, Credentials, SaslOffer
from ottla.network.sliced_transport import SlicedTransport
from ottla.network.throttling import Throttling
from ottla.network.tls_acceptor import TlsAcceptor
from ottla.network.websocket import WebSocket, WebSocketRules, load_websockets
from ottla.protocol.frame_limits import limits_by_type
from ottla.security.distinguished_name import subject_of
from ottla.security.principal import ANONYMOUS, USER, Principal
from ottla.security.principal_mapping import NoRuleError, PrincipalMapping
from ottla.security.tls import TlsError

logger = logging.getLogger("ottla.listener")

SCRATCH_BYTES: Final = 256 << 10
IDLE_SWEEP_MS: Final = 30_000


class Listener:
    """All connections of a listener read into one scratch buffer, in turn."""

    def __init__(
        self,
        endpoint: Endpoint,
        config: BrokerConfig,
        dispatcher: Dispatcher[Any],
        limits: ConnectionLimits,
        *,
        throttling: Throttling,
        newcomers: Newcomers | None = None,
        credentials: Credentials = NOBODY,
        now_ms: Callable[[], int] = lambda: 0,
        next_connection_id: Callable[[], int],
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`next_connection_id` is shared by all listeners, so connection ids are unique; so are
        `newcomers` and `throttling`, which has the quotas. `credentials` are for SASL; `now_ms`: in
        ms since 1970.
        """
        self.endpoint = endpoint
        self.port = 0
        self._advertised = next(
            (each for each in config.advertised_endpoints if each.name == endpoint.name), None
        )
        self._config = config
        self._dispatcher = dispatcher
        self._limits = limits
        self._next_connection_id = next_connection_id
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._connections: dict[int, Connection] = {}
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._limit_of = limits_by_type(config.socket_request_max_bytes)
        self._security = config.security_of(endpoint.name)
        self.is_between_brokers = (
            bool(config.zookeeper_connect) and endpoint.name == config.inter_broker_listener
        )
        self.admission = Admission(
            endpoint.name,
            config,
            self._security,
            limits,
            # With a single listener, it would exempt everybody (as in Kafka's ConnectionQuotas).
            is_protected=self.is_between_brokers and len(config.endpoints) > 1,
            throttle_ms=throttling.connected,
            connections=self._connections.values,
            monotonic_ms=monotonic_ms,
        )
        self._deadlines: dict[int, asyncio.TimerHandle] = {}
        """Of those that have not authenticated, by connection id."""
        self._newcomers = newcomers or Newcomers()
        self._refusals = Refusals(logger, endpoint.name, monotonic_ms)
        self._mapping = PrincipalMapping(self._security.ssl_principal_mapping_rules)
        self._tls: TlsAcceptor | None = None
        self._sasl: SaslOffer | None = None
        if endpoint.has_sasl:
            self._sasl = SaslOffer(
                config, self._security, credentials, now_ms=now_ms, monotonic_ms=monotonic_ms
            )

        self._websocket: WebSocketRules | None = None

    def _websocket_rules(self) -> WebSocketRules:
        """Raises ConfigError."""
        try:
            load_websockets()
        except ImportError as error:
            raise ConfigError(str(error)) from None
        origins = self._security.ottla_websocket_origins
        return WebSocketRules(
            None if ANY_ORIGIN in origins else origins,
            self._security.ottla_websocket_max_frame_bytes,
            self._monotonic_ms,
        )

    async def listen(self) -> None:
        """Binds. Afterwards `port` is the bound port, which the system chose if it was 0.

        Raises OSError, with a one-line message, if the address is not available, and ConfigError
        for certificates, and for the keys of tokens, that cannot be used.
        """
        loop = asyncio.get_running_loop()
        if self.endpoint.has_tls:
            self._tls = self._new_tls()
        if self._sasl is not None:
            await self._sasl.start()
        if self._config.speaks_websocket(self.endpoint.name):
            self._websocket = self._websocket_rules()
        try:
            self._server = await loop.create_server(
                self._new_entrance,
                # With port 0, one socket for all interfaces: two would get different ports.
                self.endpoint.host or (None if self.endpoint.port else "0.0.0.0"),
                self.endpoint.port,
                backlog=self._config.socket_listen_backlog_size,
                start_serving=False,
            )
        except OSError as error:
            # asyncio's own text begins with the error number and repeats the message.
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise OSError(
                f"cannot listen on {self.endpoint.host or '*'}:{self.endpoint.port}: {reason}."
                " Give another address with --listen HOST:PORT"
            ) from None
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self.end_idle)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def connections(self) -> tuple[Connection, ...]:
        return tuple(self._connections.values())

    @property
    def newcomers(self) -> Newcomers:
        return self._newcomers

    @property
    def certificate_ends_s(self) -> int | None:
        """When its certificate expires, in s since 1970; None if there is none to read."""
        return None if self._tls is None else self._tls.certificate_ends_s

    async def look_at_files(self) -> None:
        """Uses the certificates that the files have now."""
        if self._tls is not None:
            await self._tls.look_at_files()

    async def reconfigured(self, *, is_first: bool = False) -> bool:
        """Uses the dynamic settings. Returns whether its certificates are those now. `is_first`: it
        has not been used yet.
        """
        self._security = self.admission.own = self._config.security_of(self.endpoint.name)
        if self._tls is None:
            return True
        return await self._tls.change(tls_options(self._security), is_first=is_first)

    async def check(self, security: ListenerSecurity, *, reads_again: bool) -> None:
        """Raises ConfigError if these settings must not replace those in force."""
        if self._tls is None:
            return
        options = tls_options(security)
        if options != tls_options(self._security):
            try:
                await self._tls.check(options)
            except TlsError as error:
                raise ConfigError(
                    f"listener {self.endpoint.name}: Validation of dynamic config update of "
                    f"SSLFactory failed: {error}"
                ) from None
        elif reads_again:
            await self._tls.look_at_files()

    async def start(self) -> None:
        assert self._server is not None
        if self._tls is None:
            await self._server.start_serving()
        else:
            self._tls.start(self._server.sockets, self._config.socket_listen_backlog_size)

    def stop_accepting(self) -> None:
        if self._tls is not None:
            self._tls.stop()
        if self._sasl is not None:
            self._sasl.close()
        if self._server is not None:
            self._server.close()
        self.admission.close()
        if self._sweep is not None:
            self._sweep.cancel()

    async def close(self, grace_ms: int) -> None:
        """Stops accepting and ends each connection as soon as it waits for no response, or after
        `grace_ms`.

        An idle connection does not wait for the busy ones: its client would go on asking a broker
        that is leaving, and a consumer would get one empty response after the other.
        """
        self.stop_accepting()
        until_ms = self._monotonic_ms() + grace_ms
        while True:
            is_over = self._monotonic_ms() >= until_ms
            for connection in list(self._connections.values()):
                if is_over or not connection.is_busy:
                    connection.close()
            if is_over or not any(each.is_busy for each in self._connections.values()):
                return
            await asyncio.sleep(0.01)

    def _new_tls(self) -> TlsAcceptor:
        try:
            return TlsAcceptor(
                self.endpoint.name,
                tls_options(self._security),
                self._newcomers,
                self._refusals,
                arrive=self.admission.arrive,
                release=self.admission.release,
                new_protocol=self._new_encrypted_protocol,
                now_ms=self._now_ms,
                is_between_brokers=self.is_between_brokers,
            )
        except TlsError as error:
            raise ConfigError(f"listener {self.endpoint.name}: {error}") from None

    def _new_entrance(self) -> asyncio.BaseProtocol:
        return Entrance(self.admission, self._new_protocol)

    def _new_protocol(self) -> asyncio.BaseProtocol:
        if self._websocket is not None:
            return self._new_websocket(self._websocket, lambda: None)
        reader = self._new_reader()
        return FrameProtocol(self._scratch, reader, partial(self._accepted, reader))

    def _new_encrypted_protocol(self, begun: Callable[[], None]) -> asyncio.BaseProtocol:
        if self._websocket is not None:
            return self._new_websocket(self._websocket, begun)
        reader = self._new_reader()

        def decrypted(transport: asyncio.Transport) -> Connection:
            begun()
            return self._decrypted(reader, transport)

        return FrameProtocol(self._scratch, reader, decrypted)

    def _new_websocket(
        self,
        rules: WebSocketRules,
        begun: Callable[[], None],
    ) -> WebSocket:
        return WebSocket(
            rules,
            self._newcomers,
            begun=begun,
            release=self.admission.release,
            opened=self._websocket_opened,
            opened_texts=self._page_opened,
            refused=self._refusals.say,
        )

    def _page_opened(self, page: WebSocket) -> JsonSession:
        session = JsonSession(
            page,
            broker_id=self._config.id,
            needs_login=self._sasl is not None,
            now_ms=self._now_ms,
            cpu_thread=self._dispatcher.cpu_thread,
        )
        reader = self._new_reader()
        session.connect(FrameProtocol(self._scratch, reader, partial(self._in_websocket, reader)))
        return session

    def _websocket_opened(self, transport: asyncio.Transport) -> FrameProtocol:
        reader = self._new_reader()
        opened = FrameProtocol(self._scratch, reader, partial(self._in_websocket, reader))
        opened.connection_made(transport)
        return opened

    def _in_websocket(self, reader: FrameReader, transport: asyncio.Transport) -> Connection:
        """The handshake of WebSocket is over; the connection was admitted before it."""
        if self.endpoint.has_tls:
            return self._decrypted(reader, transport)
        return self._opened(reader, SlicedTransport(transport), ANONYMOUS)

    def _new_reader(self) -> FrameReader:
        return FrameReader(
            min_bytes=0,
            max_bytes=self._config.socket_request_max_bytes,
            limit_of=self._limit_of,
            allocated=self._limits.memory.spent,
        )

    def _accepted(self, reader: FrameReader, transport: asyncio.Transport) -> Connection:
        return self._opened(reader, transport, ANONYMOUS)

    def _decrypted(self, reader: FrameReader, transport: asyncio.Transport) -> Connection:
        """The handshake of TLS is over; the connection was admitted before it."""
        certificate = transport.get_extra_info("ssl_object").getpeercert(True)
        principal, reason = ANONYMOUS, ""
        if certificate is not None and self._sasl is None:
            try:
                principal = Principal(USER, self._mapping.name_of(subject_of(certificate)))
            except (NoRuleError, ValueError) as error:
                reason = f"ssl.principal.mapping.rules: {error}"
        connection = self._opened(reader, SlicedTransport(transport), principal)
        if reason:
            self._refusals.say(connection.host, reason)
            connection.abort()
        return connection

    def _opened(
        self, reader: FrameReader, transport: asyncio.Transport, principal: Principal
    ) -> Connection:
        self._size_buffers(transport.get_extra_info("socket"))
        address = transport.get_extra_info("peername")
        advertised_host, advertised_port = self._advertised_to(transport)
        session = ClientSession(
            self._next_connection_id(),
            str(address[0]) if address else "?",
            self.endpoint.name,
            advertised_host,
            advertised_port,
            principal,
        )
        answer: Answer = self._dispatcher.answer
        if self._sasl is not None:
            answer = self._authentication(reader, session).answer
        connection = Connection(
            transport,
            session,
            answer,
            monotonic_ms=self._monotonic_ms,
            ended=self._closed,
            reader=reader,
            written=self._limits.memory.spent,
        )
        self._connections[session.connection_id] = connection
        self._limits.memory.add(connection)
        if self._sasl is not None:
            self._newcomers.add(session.connection_id, connection.abort)
            self._deadlines[session.connection_id] = asyncio.get_running_loop().call_later(
                AUTHENTICATED_WITHIN_MS / 1000, self._too_late, connection
            )
        return connection

    def _authentication(self, reader: FrameReader, session: ClientSession) -> Authentication:
        assert self._sasl is not None
        return Authentication(
            self._sasl.rules,
            self._dispatcher.answer,
            reader,
            authenticated=partial(self._is_known, session.connection_id),
            refused=partial(self._refusals.say, session.host),
        )

    def _is_known(self, connection_id: int) -> None:
        """The client has authenticated, or has gone."""
        self._newcomers.remove(connection_id)
        deadline = self._deadlines.pop(connection_id, None)
        if deadline is not None:
            deadline.cancel()

    def _too_late(self, connection: Connection) -> None:
        self._refusals.say(
            connection.host, f"it has not authenticated within {AUTHENTICATED_WITHIN_MS} ms"
        )
        connection.abort()

    def _closed(self, connection: Connection) -> None:
        self._is_known(connection.session.connection_id)
        if self._connections.pop(connection.session.connection_id, None) is not None:
            self.admission.release(connection.session.host)
            self._limits.memory.remove(connection)

    def _size_buffers(self, accepted: socket.socket) -> None:
        """Applies socket.send.buffer.bytes and socket.receive.buffer.bytes, if set."""
        for option, size_bytes in (
            (socket.SO_SNDBUF, self._config.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, self._config.socket_receive_buffer_bytes),
        ):
            if size_bytes >= 0:
                accepted.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    def end_idle(self) -> None:
        max_idle_ms = self._config.connections_max_idle_ms
        if max_idle_ms >= 0:  # a negative maximum is none, as in Kafka's Selector
            before_ms = self._monotonic_ms() - max_idle_ms
            for connection in list(self._connections.values()):
                if connection.is_idle(before_ms):
                    # What is unsent is not awaited: the client has not read for as long.
                    connection.abort()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(IDLE_SWEEP_MS / 1000, self.end_idle)

    @property
    def bound_to(self) -> Endpoint:
        """The bound endpoint, with the actual port."""
        return replace(self.endpoint, port=self.port)

    @property
    def reached_at(self) -> Endpoint:
        """The endpoint to register: advertised or bound, with the actual port."""
        address = self._advertised or self.endpoint
        return replace(address, port=address.port or self.port)

    def _advertised_to(self, transport: asyncio.Transport) -> tuple[str, int]:
        """The address at which clients of this listener find the broker.

        Without advertised.listeners, a listener on every interface advertises the address that
        this client connected to: it is the one known to work for the client.
        """
        if self._advertised is not None:
            return self._advertised.host, self._advertised.port or self.port
        if not self.endpoint.every_interface:
            return self.endpoint.host, self.port
        return str(transport.get_extra_info("sockname")[0]), self.port
