"""TLS of a connection, from librdkafka's settings."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.errors import SecurityError, SettingsError

UNSUPPORTED: Final = {
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location",
    "ssl.certificate.pem": "ssl.certificate.location",
    "ssl.key.pem": "ssl.key.location",
}
"""What to use instead: Python reads certificates and keys of a client from files in PEM only."""

NO_TLS: Final = ("WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons where the other side does not speak TLS."""
EXPIRED: Final = 10
UNKNOWN_AUTHORITY: Final = (18, 19, 20, 21)
OTHER_HOST: Final = (62, 64)
"""Codes of OpenSSL's X509_V_ERR_…"""


def tls_of(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Raises SettingsError for what cannot be used here."""
    for name, instead in UNSUPPORTED.items():
        if name in settings:
            raise SettingsError(f"this command cannot use {name}; use {instead}.")
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
        raise SettingsError(f"no certificates in {given}: {error}.") from None
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
        raise SettingsError(
            f"cannot use the certificate {own}: {error}.",
            "It needs ssl.key.location, and ssl.key.password if the key is encrypted.",
        ) from None


def encrypted(connection: socket.socket, host: str, tls: ssl.SSLContext) -> socket.socket:
    """The connection with TLS; `host` is the name that the certificate must have.

    Raises SecurityError if the certificate is refused; OSError, also if there is no TLS.
    """
    try:
        return tls.wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message.rstrip(".")
        is_unknown = error.verify_code in UNKNOWN_AUTHORITY
        raise SecurityError(
            f"the certificate of {host} is refused: {reason}.",
            _hint(error, host),
            to_set="ssl.ca.location if its authority is your own" if is_unknown else None,
        ) from None
    except ssl.SSLEOFError:
        raise  # as from a listener without TLS
    except ssl.SSLError as error:
        if error.reason in NO_TLS:
            raise
        raise SecurityError(f"no TLS with {host}: {error.reason or error}.") from None


def certificate_ends_s(connection: socket.socket) -> int | None:
    """When the certificate of the other side expires, in s since 1970; None if it was not
    verified, or without TLS.
    """
    if not isinstance(connection, ssl.SSLSocket):
        return None
    given = (connection.getpeercert() or {}).get("notAfter")
    return None if given is None else int(ssl.cert_time_to_seconds(str(given)))


def _hint(error: ssl.SSLCertVerificationError, host: str) -> str | None:
    """What to do about a certificate that is refused."""
    if error.verify_code in OTHER_HOST:
        return (
            "Connect by a name that the certificate has, or make one for this name: "
            f"ottla certificate broker {host}"
        )
    if error.verify_code == EXPIRED:
        return "The broker needs a new one; it reads a changed file within seconds."
    return None
