"""What a client of a SASL listener must do before its first request, and again while it lives.

KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (re-authentication); as Kafka's
SaslServerAuthenticator:

    HANDSHAKE  -- SaslHandshake v1 -->  MESSAGES  -- SaslAuthenticate ... -->  AUTHENTICATED
               -- SaslHandshake v0 -->  TOKENS    -- bare tokens ...      -->
    AUTHENTICATED  -- SaslHandshake -->  HANDSHAKE, then as before: the same mechanism and client

Before that, a request's type is looked at, and nothing else of it unless it is one of these. A
client that is refused learns of it after connection.failed.authentication.delay.ms (KIP-306).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ottla.network.client_session import ClientSession
from ottla.network.connection import Answer, Part
from ottla.network.frame_reader import FrameReader
from ottla.network.handlers import EndConnectionError
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.frames import (
    RequestHeader,
    read_request_body,
    read_request_header,
    write_response,
)
from ottla.protocol.messages import messages_of
from ottla.protocol.primitives import Buffer
from ottla.protocol.versions import API_VERSIONS, APIS
from ottla.security.principal import USER, Principal
from ottla.security.sasl.mechanism import Exchange, Identity, NotYetError, RefusedError

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
MIN_REAUTHENTICATION_MS: Final = 1_000
"""From one re-authentication to the next: as in Kafka, whose clients wait for far longer."""
MAX_VERSIONS_REQUESTS: Final = 4
"""Of ApiVersions, before the handshake: a client may have to ask again in an older version."""
MAX_WAITS: Final = 3
"""Of one message, for what is fetched to check it."""
_FIRST_OF_MESSAGES: Final = 1
"""The version of SaslHandshake from which on the tokens are in SaslAuthenticate requests."""
_FIRST_WITH_LIFETIME: Final = 1
"""The version of SaslAuthenticate from which on the answer has the session's lifetime."""


class _State(Enum):
    HANDSHAKE = "SASL handshake"
    MESSAGES = "SASL authentication"
    TOKENS = "SASL authentication with bare tokens"
    AUTHENTICATED = "authenticated"


@dataclass(frozen=True, slots=True)
class SaslRules:
    """What a listener offers."""

    mechanisms: Mapping[str, Callable[[], Exchange]]
    """Begins an exchange, by the mechanism's name."""
    max_lifetime_ms: Mapping[str, int]
    """connections.max.reauth.ms by mechanism; 0: a session does not end."""
    max_receive_bytes: int
    """Of a request before authentication: sasl.server.max.receive.size."""
    failure_delay_ms: int
    now_ms: Callable[[], int]
    monotonic_ms: Callable[[], int]


class Authentication:
    """Of one connection; `answer` is its Answer. For the event loop's thread only."""

    def __init__(
        self,
        rules: SaslRules,
        rest: Answer,
        reader: FrameReader,
        *,
        authenticated: Callable[[], None],
        refused: Callable[[str], None],
    ) -> None:
        """`rest` answers all requests of an authenticated client. `authenticated` is called once;
        `refused` gets the reason, for the log.
        """
        self._rules = rules
        self._rest = rest
        self._reader = reader
        self._authenticated = authenticated
        self._refused = refused
        self._state = _State.HANDSHAKE
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._is_again = False
        """The client was authenticated before."""
        self._has_other_mechanism = False
        """Than the one it must authenticate with again."""
        self._versions_requests = 0
        self._expires_ms: int | None = None
        """When the session ends, on the monotonic clock."""
        self._again_ms: int | None = None
        """When the last re-authentication began."""
        self._full_size_bytes = reader.max_bytes
        reader.max_bytes = min(rules.max_receive_bytes, reader.max_bytes)

    async def answer(self, frame: Buffer, session: ClientSession) -> list[Part]:
        """Raises EndConnectionError."""
        if self._state is _State.AUTHENTICATED and not self._begins_again(frame):
            expires_ms = self._expires_ms
            if expires_ms is not None and self._rules.monotonic_ms() >= expires_ms:
                raise EndConnectionError(
                    f"the session of {session.principal} is over: it has not authenticated again"
                )
            return await self._rest(frame, session)
        try:
            return await self._advance(frame, session)
        except DecodeError as error:
            raise await self._failed(f"{self._state.value}: {error}", []) from None

    def _begins_again(self, frame: Buffer) -> bool:
        # Where sessions do not end, a client has no reason to: the request's handler refuses it.
        if _key_of(frame) != SASL_HANDSHAKE or self._expires_ms is None:
            return False
        now_ms = self._rules.monotonic_ms()
        if self._again_ms is not None and now_ms < self._again_ms + MIN_REAUTHENTICATION_MS:
            return False  # then the request's handler refuses it
        self._again_ms = now_ms
        self._is_again = True
        self._state = _State.HANDSHAKE
        return True

    async def _advance(self, frame: Buffer, session: ClientSession) -> list[Part]:
        if self._state is _State.TOKENS:
            return await self._take_token(bytes(frame), session)
        key = _key_of(frame)
        if self._state is _State.MESSAGES:
            if key != SASL_AUTHENTICATE:
                raise await self._failed(f"unexpected {_name(key)} during SASL authentication", [])
            return await self._take_message(frame, session)
        if key == API_VERSIONS and not self._is_again:
            self._versions_requests += 1
            if self._versions_requests <= MAX_VERSIONS_REQUESTS:
                return await self._rest(frame, session)
        if key != SASL_HANDSHAKE:
            raise await self._failed(
                f"unexpected {_name(key)} during SASL handshake: its security.protocol must be "
                "SASL_PLAINTEXT or SASL_SSL here",
                [],
            )
        return await self._shake_hands(frame)

    async def _shake_hands(self, frame: Buffer) -> list[Part]:
        header = read_request_header(frame)
        request = _read(header, frame)
        build = messages_of(SASL_HANDSHAKE, header.version)
        name, offered = request.mechanism, tuple(self._rules.mechanisms)
        if name not in offered:
            response = build.SaslHandshakeResponse(
                error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=offered
            )
            raise await self._failed(
                f"it wants SASL mechanism {name[:40]!r}; offered are {', '.join(offered)}",
                write_response(response, header.correlation_id),
            )
        self._has_other_mechanism = self._is_again and name != self._mechanism
        if not self._has_other_mechanism:
            self._mechanism = name
            self._exchange = self._rules.mechanisms[name]()
        has_messages = header.version >= _FIRST_OF_MESSAGES
        self._state = _State.MESSAGES if has_messages else _State.TOKENS
        response = build.SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=offered)
        return write_response(response, header.correlation_id)

    async def _take_message(self, frame: Buffer, session: ClientSession) -> list[Part]:
        header = read_request_header(frame)
        request = _read(header, frame)
        build = messages_of(SASL_AUTHENTICATE, header.version)
        try:
            token = await self._exchanged(bytes(request.auth_bytes), session)
        except RefusedError as error:
            said = error.told or (
                f"Authentication failed during {self._what} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            )
            raise await self._refuse(said, str(error), build, header) from None
        fields: dict[str, Any] = {"error_code": ErrorCode.none, "auth_bytes": token}
        if header.version >= _FIRST_WITH_LIFETIME:
            fields["session_lifetime"] = self._complete(session)
        else:
            self._complete(session)
        return write_response(build.SaslAuthenticateResponse(**fields), header.correlation_id)

    async def _refuse(
        self, said: str, reason: str, build: Any, header: RequestHeader
    ) -> EndConnectionError:
        response = build.SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed, error_message=said, auth_bytes=b""
        )
        return await self._failed(reason, write_response(response, header.correlation_id))

    async def _take_token(self, token: bytes, session: ClientSession) -> list[Part]:
        try:
            answer = await self._exchanged(token, session)
        except RefusedError as error:
            raise await self._failed(str(error), []) from None
        self._complete(session)
        return [len(answer).to_bytes(4, "big") + answer]

    async def _exchanged(self, message: bytes, session: ClientSession) -> bytes:
        """Raises RefusedError."""
        if self._has_other_mechanism:
            raise _not_same(
                "The SASL mechanism requested by the client is not supported for re-authentication "
                f"of mechanism '{self._mechanism}'"
            )
        assert self._exchange is not None
        answer = await _answered(self._exchange, message)
        identity = self._exchange.identity
        if identity is not None and self._is_again and identity.name != session.principal.name:
            raise _not_same(
                "Cannot change principals during re-authentication from "
                f"User.{session.principal.name}: User.{identity.name}"
            )
        return answer

    def _complete(self, session: ClientSession) -> int:
        """If the exchange is over, the client may send requests. The session's lifetime in ms."""
        assert self._exchange is not None
        identity = self._exchange.identity
        if identity is None:
            return 0
        self._exchange = None
        self._state = _State.AUTHENTICATED
        self._reader.max_bytes = self._full_size_bytes
        if not self._is_again:
            session.principal = Principal(USER, identity.name)
            self._authenticated()
        lifetime_ms = self._lifetime_ms(identity)
        self._expires_ms = None
        if lifetime_ms is not None:
            self._expires_ms = self._rules.monotonic_ms() + lifetime_ms
        return lifetime_ms or 0

    def _lifetime_ms(self, identity: Identity) -> int | None:
        most_ms = self._rules.max_lifetime_ms.get(self._mechanism, 0)
        limits = [most_ms] if most_ms > 0 else []
        if identity.expires_ms is not None:
            limits.append(max(identity.expires_ms - self._rules.now_ms(), 0))
        return min(limits, default=None)

    @property
    def _what(self) -> str:
        return "re-authentication" if self._is_again else "authentication"

    async def _failed(self, reason: str, last: list[Part]) -> EndConnectionError:
        self._refused(reason)
        # Every failure takes at least so long: passwords cannot be tried quickly.
        await asyncio.sleep(self._rules.failure_delay_ms / 1000)
        return EndConnectionError(reason, last)


def _not_same(reason: str) -> RefusedError:
    """Of a client that authenticates again as another one; it may know the reason."""
    return RefusedError(reason, reason)


async def _answered(exchange: Exchange, message: bytes) -> bytes:
    """Raises RefusedError."""
    for _ in range(MAX_WAITS):
        try:
            return exchange.answer(message)
        except NotYetError as later:
            await later.fetched
    raise RefusedError("what is needed to check it cannot be had")


def _key_of(frame: Buffer) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


def _name(key: int) -> str:
    return f"{APIS[key].name} request" if key in APIS else f"bytes (request key {key})"


def _read(header: RequestHeader, frame: Buffer) -> Any:
    """Raises DecodeError."""
    api = APIS[header.key]
    if not api.min_version <= header.version <= api.max_version:
        raise DecodeError(f"version {header.version} of {api.name} is not supported")
    return read_request_body(header, frame)
