"""How this broker shows another one who it is: TLS and SASL on the listener of the brokers."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.config import BrokerConfig, ConfigError
from ottla.config.listener_security import ListenerSecurity, tls_options
from ottla.config.listener_tokens import token_login
from ottla.network.authentication import SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.network.token_source import TokenSource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.sasl_client import PLAIN, SaslError, Scram, plain_message
from ottla.security.sasl.mechanism import OAUTHBEARER
from ottla.security.sasl.own_token import first_message
from ottla.security.tls import TlsError, TlsOptions, client_context, state_of_files

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
NONCE_BYTES: Final = 16

Send: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Sends a request on a connection that is not in use yet; returns the response."""


class Login(NamedTuple):
    """The user of this broker."""

    mechanism: str
    username: str
    password: str


class PeerTls:
    """The context for connections to other brokers, which follows changed files."""

    def __init__(self, options: TlsOptions) -> None:
        """Raises TlsError."""
        self._options = options
        self._state: tuple[object, ...] | None = state_of_files(options.files)
        self._context = client_context(options)

    def change(self, options: TlsOptions) -> None:
        """Uses these from now on."""
        if options != self._options:
            self._options = options
            self._state = None

    def context(self) -> ssl.SSLContext:
        """For one more connection. The one from before if changed files cannot be used."""
        state = state_of_files(self._options.files)
        if state != self._state:
            try:
                self._context = client_context(self._options)
            except TlsError:
                return self._context  # the listener with the same files says so in the log
            self._state = state
        return self._context


class PeerSecurity(NamedTuple):
    """What comes before the first request to another broker."""

    tls: PeerTls | None = None
    login: Login | TokenSource | None = None


NO_SECURITY: Final = PeerSecurity()
"""Between brokers with a PLAINTEXT listener."""


def peer_security(config: BrokerConfig) -> PeerSecurity:
    """By the settings of the listener of the brokers. Raises ConfigError."""
    if not config.zookeeper_connect:
        return NO_SECURITY
    name = config.inter_broker_listener
    (endpoint,) = (each for each in config.endpoints if each.name == name)
    security = config.security_of(name)
    tls = None
    if endpoint.has_tls:
        try:
            tls = PeerTls(tls_options(security))
        except TlsError as error:
            raise ConfigError(f"listener {name}: {error}") from None
    return PeerSecurity(tls, _login(config, security) if endpoint.has_sasl else None)


def _login(config: BrokerConfig, security: ListenerSecurity) -> Login | TokenSource:
    mechanism = config.sasl_mechanism_inter_broker_protocol
    if mechanism == OAUTHBEARER:
        return TokenSource(token_login(config.given, security))
    options = security.login_options(mechanism)
    return Login(mechanism, options["username"], options["password"])


async def log_in(login: Login | TokenSource, send: Send) -> int:
    """Authenticates a new connection. The session's lifetime in ms; 0: it does not end.

    Raises SaslError if the other broker refuses, or there is no token.
    """
    token = await login.token() if isinstance(login, TokenSource) else ""
    mechanism = login.mechanism if isinstance(login, Login) else OAUTHBEARER
    build = messages_of(SASL_HANDSHAKE, HANDSHAKE_VERSION, "request")
    response = await send(build.SaslHandshakeRequest(mechanism=mechanism))
    if response.error_code is not ErrorCode.none:
        offered = ", ".join(response.mechanisms) or "none"
        raise SaslError(f"it does not offer SASL mechanism {mechanism}, only {offered}")
    build = messages_of(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, "request")
    lifetime_ms = 0

    async def exchanged(message: bytes) -> bytes:
        nonlocal lifetime_ms
        response = await send(build.SaslAuthenticateRequest(auth_bytes=message))
        if response.error_code is not ErrorCode.none:
            raise SaslError(response.error_message or response.error_code.name)
        lifetime_ms = response.session_lifetime
        return bytes(response.auth_bytes)

    if isinstance(login, TokenSource):
        said = await exchanged(first_message(token))
        if said:  # why it is refused; the failure follows (RFC 7628, section 3.2.3)
            await exchanged(b"\x01")
            raise SaslError(f"the token is not accepted: {said[:200].decode(errors='replace')}")
        return lifetime_ms
    if login.mechanism == PLAIN:
        await exchanged(plain_message(login.username, login.password))
        return lifetime_ms
    nonce = secrets.token_hex(NONCE_BYTES)
    scram = Scram(login.mechanism, login.username, login.password, nonce)
    scram.check(await exchanged(scram.final(await exchanged(scram.first()))))
    return lifetime_ms
