"""What a listener wants of its clients, asked of the listener itself.

A client with the wrong security.protocol sees no more than a connection that ends: a broker that
expects TLS takes its first request for noise, and the reverse. So it tries, once and within
seconds, how the listener wants to be spoken to: in the clear or with TLS, and whether it asks for
SASL (SaslHandshake with no mechanism: a listener with SASL lists its own, KIP-43).
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.client.addresses import Address
from ottla.client.errors import ClientError, RetriableError, SecurityError
from ottla.client.security import Security
from ottla.client.wire import Wire
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import API_VERSIONS

WITHIN_S: Final = 3.0
ALERT_WITHIN_S: Final = 0.3
SASL_HANDSHAKE: Final = 17
ASKED_FOR: Final = "CERTIFICATE_REQUIRED"
"""In the alert with which a server ends a connection without a client's certificate (RFC 8446)."""
CERTIFICATE_SETTINGS: Final = ("ssl.certificate.location", "ssl.key.location")


class Wanted(NamedTuple):
    """How a listener wants to be spoken to."""

    has_tls: bool
    mechanisms: tuple[str, ...] = ()
    """Of SASL; empty: it does not ask."""
    asks_for_certificate: bool = False

    @property
    def protocol(self) -> str:
        plain = "SSL" if self.has_tls else "PLAINTEXT"
        return f"SASL_{plain}" if self.mechanisms else plain

    @property
    def settings(self) -> str:
        """What a client must set, in words."""
        words = [f"security.protocol={self.protocol}"]
        if self.mechanisms:
            words += [f"sasl.mechanism={' or '.join(self.mechanisms)}", "sasl.username"]
            words.append("sasl.password")
        if self.has_tls:
            words.append("ssl.ca.location if the authority is your own")
        if self.asks_for_certificate:
            words += CERTIFICATE_SETTINGS
        return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def explained(address: Address, security: Security, error: ClientError) -> ClientError:
    """The error of a first request; or one that says so if the listener wants another protocol."""
    wanted = listener_wants(address)
    if wanted is None:
        return error
    own = Wanted(security.tls is not None, () if security.sasl is None else ("",))
    if wanted.asks_for_certificate and own.has_tls:
        # Whether it asks for SASL, too, it tells those with a certificate only.
        return SecurityError(
            f"the listener at {address} ends the connection after the handshake: it seems to want "
            "a certificate of the client.",
            to_set=" and ".join(CERTIFICATE_SETTINGS),
        )
    if own.protocol == wanted.protocol:
        return error
    return SecurityError(
        f"the listener at {address} wants {wanted.protocol}, not {own.protocol}.",
        to_set=wanted.settings,
    )


def listener_wants(address: Address) -> Wanted | None:
    """None if it speaks neither in the clear nor with TLS."""
    for tls in (None, _unverified()):
        try:
            wire = _wire(address, tls)
        except ssl.SSLError as error:
            if ASKED_FOR in str(error):
                return Wanted(True, asks_for_certificate=True)
            continue
        except OSError:
            continue
        try:
            wire.ask(messages_of(API_VERSIONS, 0, "request").ApiVersionsRequest(), WITHIN_S)
            return Wanted(tls is not None, _mechanisms(wire))
        except RetriableError:
            continue
        finally:
            wire.close()
    return None


def _mechanisms(wire: Wire) -> tuple[str, ...]:
    build = messages_of(SASL_HANDSHAKE, 1, "request")
    try:
        response = wire.ask(build.SaslHandshakeRequest(mechanism=""), WITHIN_S)
    except RetriableError:
        return ()
    return tuple(response.mechanisms)


def _unverified() -> ssl.SSLContext:
    """Only to learn whether it is TLS: nothing is said that must stay secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _read_alert(connection: socket.socket) -> None:
    """With TLS 1.3 a server refuses a client without a certificate after the handshake, with an
    alert, or, as uvloop does, without. Raises SSLError then.
    """
    connection.settimeout(ALERT_WITHIN_S)
    with suppress(TimeoutError):
        if not connection.recv(1):
            raise ssl.SSLError(ASKED_FOR)
    connection.settimeout(WITHIN_S)


def _wire(address: Address, tls: ssl.SSLContext | None) -> Wire:
    connection = socket.create_connection(address, WITHIN_S)
    try:
        connection.settimeout(WITHIN_S)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_hostname=address.host)
            _read_alert(connection)
        return Wire(connection, address, "ottla")
    except BaseException:
        connection.close()
        raise
