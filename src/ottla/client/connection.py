"""A connection to one broker: TCP, TLS, SASL, and the versions that the broker supports.

A broker that is suspended, or behind a broken network, may still accept connections (the operating
system does) but not respond. So a connection counts only once the broker has told its versions,
which a live one does at once.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from ottla.client.addresses import Address, why_not_connected
from ottla.client.errors import ClientError, ClosedError, NotKafkaError, UnreachableError
from ottla.client.question import Question, Versions
from ottla.client.security import Security
from ottla.client.wire import Wire
from ottla.protocol.frames import write_request
from ottla.protocol.messages import message_class, messages_of
from ottla.protocol.versions import API_VERSIONS

VERSION: Final = 0
"""Every broker answers it, and in this version (KIP-511)."""


# What every connection needs first is imported with this module, and not while a broker waits:
# Python reports Ctrl-C within an import as an error of what it was importing.
_REQUEST: Final = messages_of(API_VERSIONS, VERSION, "request").ApiVersionsRequest()
write_request(_REQUEST, 0, None)
message_class(API_VERSIONS, VERSION, "response")


class Connection:
    """Requests go out one after the other. Every method raises RetriableError."""

    def __init__(self, wire: Wire, versions: Versions, security: Security) -> None:
        self.address = wire.address
        self.certificate_ends_s = wire.certificate_ends_s
        self.versions = versions
        self._wire = wire
        self._security = security
        self._has_answered = False

    def ask(self, question: Question, within_s: float) -> Any:
        """The response. Raises UnsupportedError, too; and SecurityError if the listener wants
        another security.protocol.
        """
        request = question.request(self.versions, self.address)
        try:
            response = self._wire.ask(request, within_s)
        except ClosedError as error:
            # A listener with SASL ends the connection of a client that does not authenticate.
            if self._has_answered or self._security.sasl is not None:
                raise
            raise _explained(self.address, self._security, error) from None
        self._has_answered = True
        return response

    def ask_bytes(self, key: int, body: bytes, within_s: float) -> bytes:
        """The response's body to a request that is not one of Kafka's messages."""
        return self._wire.ask_bytes(key, body, within_s)

    def check(self, within_s: float) -> None:
        """Whether the broker still responds: raises RetriableError if not."""
        self.versions = _asked_versions(self._wire, within_s)

    def close(self) -> None:
        self._wire.close()


def open_connection(
    address: Address, security: Security, client_id: str, connect_s: float, answer_s: float
) -> Connection:
    """Raises SecurityError if the certificate or the user is refused, or the listener wants another
    security.protocol; and RetriableError.
    """
    try:
        return _agreed(address, security, client_id, connect_s, answer_s)
    except (ClosedError, NotKafkaError) as error:
        raise _explained(address, security, error) from None


def _explained(address: Address, security: Security, error: ClientError) -> ClientError:
    # Imported late: few connections need it.
    from ottla.client.listener_wants import explained

    return explained(address, security, error)


def _agreed(
    address: Address, security: Security, client_id: str, connect_s: float, answer_s: float
) -> Connection:
    wire = _opened(address, security, client_id, connect_s)
    try:
        if security.sasl is not None:
            # Imported late, as TLS below: most connections have neither.
            from ottla.client.login import authenticate

            authenticate(wire, security.sasl, answer_s)
        return Connection(wire, _asked_versions(wire, answer_s), security)
    except BaseException:
        wire.close()
        raise


def _opened(address: Address, security: Security, client_id: str, connect_s: float) -> Wire:
    try:
        connection = socket.create_connection(address, connect_s)
    except OSError as error:
        reason = why_not_connected(error, address.host, connect_s)
        raise UnreachableError(f"cannot reach a broker at {address}: {reason}.") from None
    # Else the first request after a TLS handshake waits 40 ms for the broker's acknowledgement.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ends_s = None
    try:
        if security.tls is not None:
            from ottla.client.tls import certificate_ends_s, encrypted

            connection = encrypted(connection, address.host, security.tls)
            ends_s = certificate_ends_s(connection)
    except OSError:
        connection.close()
        raise ClosedError(f"the broker at {address} closed the connection before TLS.") from None
    except BaseException:
        connection.close()
        raise
    wire = Wire(connection, address, client_id)
    wire.certificate_ends_s = ends_s
    return wire


def _asked_versions(wire: Wire, within_s: float) -> Versions:
    response = wire.ask(_REQUEST, within_s)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
