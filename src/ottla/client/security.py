"""What comes before the first request of a connection, from librdkafka's settings.

The settings have librdkafka's meanings and defaults (its CONFIGURATION.md). Those that only
librdkafka can follow are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.client.errors import SettingsError

if TYPE_CHECKING:
    import ssl

ANONYMOUS: Final = "User:ANONYMOUS"
"""A client that has not authenticated."""
PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")


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


def security_of(settings: Mapping[str, Any]) -> Security:
    """From librdkafka's settings. Raises SettingsError for what cannot be used here."""
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in PROTOCOLS:
        raise SettingsError(
            f"security.protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}."
        )
    tls = None
    if protocol.endswith("ssl"):
        # Imported late: ssl takes 10 ms.
        from ottla.client.tls import tls_of

        tls = tls_of(settings)
    return Security(
        tls,
        _sasl(settings) if protocol.startswith("sasl") else None,
    )


def _sasl(settings: Mapping[str, Any]) -> Sasl:
    from ottla.protocol.sasl_client import MECHANISMS

    mechanism = str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")))
    if mechanism not in MECHANISMS:
        raise SettingsError(
            f"this command cannot use sasl.mechanism={mechanism}.",
            f"It can use {', '.join(MECHANISMS)}.",
        )
    for name in ("sasl.username", "sasl.password"):
        if name not in settings:
            raise SettingsError(f"{mechanism} needs {name}.")
    return Sasl(mechanism, str(settings["sasl.username"]), str(settings["sasl.password"]))


def principal_of(settings: Mapping[str, Any]) -> str | None:
    """Who the brokers take this client for, as an ACL names it; None if that depends on its
    certificate, or on its token.
    """
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol.startswith("sasl"):
        user = settings.get("sasl.username")
        return None if user is None else f"User:{user}"
    has_certificate = protocol == "ssl" and "ssl.certificate.location" in settings
    return None if has_certificate else ANONYMOUS
