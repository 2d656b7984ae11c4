"""SASL on a connection: SaslHandshake (key 17) and SaslAuthenticate (key 36, KIP-152)."""

from __future__ import annotations

import secrets
from typing import Final

from ottla.client.errors import SecurityError
from ottla.client.security import Sasl
from ottla.client.wire import Wire
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.sasl_client import PLAIN, SaslError, Scram, plain_message

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 0


def authenticate(wire: Wire, sasl: Sasl, within_s: float) -> None:
    """Raises SecurityError if the user is refused, and RetriableError."""
    address = wire.address
    offered = _offered(wire, sasl.mechanism, within_s)
    if offered is not None and not offered:
        raise SecurityError(
            f"the listener at {address} does not ask who its clients are.",
            "Set security.protocol=PLAINTEXT, or SSL if it has TLS.",
        )
    if offered is not None:
        raise SecurityError(
            f"{address.host} refused the SASL authentication: it does not offer "
            f"{sasl.mechanism}; it offers {', '.join(offered)}.",
            f"Set sasl.mechanism={' or '.join(offered)}.",
        )
    try:
        _exchange_messages(wire, sasl, within_s)
    except SaslError as error:
        raise SecurityError(
            f"{address.host} refused the SASL authentication: {error}",
            f"User {sasl.username!r} does not exist there, has no password for {sasl.mechanism}, "
            f"or another one. As an administrator: ottla user describe {sasl.username}",
        ) from None


def _offered(wire: Wire, mechanism: str, within_s: float) -> tuple[str, ...] | None:
    """None if the listener takes the mechanism; else those that it offers."""
    build = messages_of(SASL_HANDSHAKE, HANDSHAKE_VERSION, "request")
    response = wire.ask(build.SaslHandshakeRequest(mechanism=mechanism), within_s)
    return None if response.error_code is ErrorCode.none else tuple(response.mechanisms)


def _exchange_messages(wire: Wire, sasl: Sasl, within_s: float) -> None:
    build = messages_of(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, "request")

    def exchanged(message: bytes) -> bytes:
        response = wire.ask(build.SaslAuthenticateRequest(auth_bytes=message), within_s)
        if response.error_code is not ErrorCode.none:
            reason = response.error_message or response.error_code.name.replace("_", " ")
            raise SaslError(f"{reason.rstrip('.')}.")
        return bytes(response.auth_bytes)

    if sasl.mechanism == PLAIN:
        exchanged(plain_message(sasl.username, sasl.password))
        return
    scram = Scram(sasl.mechanism, sasl.username, sasl.password, secrets.token_hex(16))
    scram.check(exchanged(scram.final(exchanged(scram.first()))))
