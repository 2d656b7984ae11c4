"""TLS and SASL on plain connections, from the librdkafka settings of `--client-config`.

The settings have librdkafka's meanings and defaults (its CONFIGURATION.md). Those that only
librdkafka can follow are refused.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.plain_frames import answered
from ottla.client.sasl import MECHANISMS, PLAIN, SaslError, Scram, plain_message

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 0

PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
UNSUPPORTED: Final = {
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location",
    "ssl.certificate.pem": "ssl.certificate.location",
    "ssl.key.pem": "ssl.key.location",
}
"""What to use instead: Python reads certificates and keys of a client from files in PEM only."""
CHECK: Final = "Check the security settings (--client-config)."


@dataclass(frozen=True, slots=True)
class Sasl:
    """How to authenticate."""

    mechanism: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Security:
    """What comes before the first request. Neither: a PLAINTEXT listener."""

    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None


NONE: Final = Security()


def security_of(settings: Mapping[str, Any]) -> Security:
    """From librdkafka's settings. Raises UsageFailed for what cannot be used here."""
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in PROTOCOLS:
        raise UsageFailed(
            f"--client-config: security.protocol must be one of {', '.join(PROTOCOLS)}, "
            f"not {protocol!r}."
        )
    return Security(
        _tls(settings) if protocol.endswith("ssl") else None,
        _sasl(settings) if protocol.startswith("sasl") else None,
    )


def _tls(settings: Mapping[str, Any]) -> ssl.SSLContext:
    for name, instead in UNSUPPORTED.items():
        if name in settings:
            raise UsageFailed(f"--client-config: this command cannot use {name}; use {instead}.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    verifies = str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "true"
    algorithm = str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower()
    context.check_hostname = verifies and algorithm == "https"
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    authorities = settings.get("ssl.ca.location")
    try:
        if "ssl.ca.pem" in settings:
            context.load_verify_locations(cadata=settings["ssl.ca.pem"])
        elif authorities and authorities != "probe":
            context.load_verify_locations(authorities)
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        given = authorities if "ssl.ca.pem" not in settings else "ssl.ca.pem"
        raise UsageFailed(f"--client-config: no certificates in {given}: {error}.") from None
    _load_own_certificate(context, settings)
    return context


def _load_own_certificate(context: ssl.SSLContext, settings: Mapping[str, Any]) -> None:
    own = settings.get("ssl.certificate.location")
    if own is None:
        return
    # Without the password, Python would ask for one on the terminal.
    password = str(settings.get("ssl.key.password", ""))
    try:
        context.load_cert_chain(own, settings.get("ssl.key.location"), lambda: password)
    except (OSError, ValueError) as error:
        raise UsageFailed(
            f"--client-config: cannot use the certificate {own}: {error}.",
            "It needs ssl.key.location, and ssl.key.password if the key is encrypted.",
        ) from None


def _sasl(settings: Mapping[str, Any]) -> Sasl:
    mechanism = str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")))
    if mechanism not in MECHANISMS:
        raise UsageFailed(
            f"--client-config: this command cannot use sasl.mechanism={mechanism}.",
            f"It can use {', '.join(MECHANISMS)}.",
        )
    for name in ("sasl.username", "sasl.password"):
        if name not in settings:
            raise UsageFailed(f"--client-config: {mechanism} needs {name}.")
    return Sasl(mechanism, str(settings["sasl.username"]), str(settings["sasl.password"]))


def secured(connection: socket.socket, host: str, security: Security) -> socket.socket:
    """The connection after TLS and SASL; `host` is the name that the certificate must have.

    Closes it on failure. Raises Failed if the certificate or the user is refused, and OSError or
    EOFError if the connection ends.
    """
    try:
        if security.tls is not None:
            connection = security.tls.wrap_socket(connection, server_hostname=host)
        if security.sasl is not None:
            _authenticate(connection, security.sasl)
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise Failed(
            f"the certificate of {host} is refused: {error.verify_message}.", CHECK
        ) from None
    except ssl.SSLError as error:
        connection.close()
        raise Failed(f"no TLS with {host}: {error.reason or error}.", CHECK) from None
    except SaslError as error:
        connection.close()
        raise Failed(f"{host} refused the SASL authentication: {error}", CHECK) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _authenticate(connection: socket.socket, sasl: Sasl) -> None:
    """Raises SaslError, OSError, EOFError."""
    # Imported late: only SASL needs Kafka's messages here.
    from ottla.protocol.errors import ErrorCode
    from ottla.protocol.messages import messages_of

    build = messages_of(SASL_HANDSHAKE, HANDSHAKE_VERSION, "request")
    response = answered(connection, build.SaslHandshakeRequest(mechanism=sasl.mechanism))
    if response.error_code is not ErrorCode.none:
        offered = ", ".join(response.mechanisms) or "none"
        raise SaslError(f"It does not offer {sasl.mechanism}; it offers {offered}.")
    build = messages_of(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, "request")

    def exchanged(message: bytes) -> bytes:
        response = answered(connection, build.SaslAuthenticateRequest(auth_bytes=message))
        if response.error_code is not ErrorCode.none:
            reason = response.error_message or response.error_code.name.replace("_", " ")
            raise SaslError(f"{reason.rstrip('.')}.")
        return bytes(response.auth_bytes)

    if sasl.mechanism == PLAIN:
        exchanged(plain_message(sasl.username, sasl.password))
        return
    scram = Scram(sasl.mechanism, sasl.username, sasl.password, secrets.token_hex(16))
    scram.check(exchanged(scram.final(exchanged(scram.first()))))
