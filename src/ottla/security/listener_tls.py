"""The TLS of one listener as it is in force, and what may replace it while the broker runs.

As Kafka's SslFactory: a new key store must be of the same names as the old one, unless that is
allowed, and on the listener of the brokers the old and the new certificates must trust each other.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from ottla.security.certificate_dates import certificate_ends_s
from ottla.security.certificate_names import NotSameError, check_same_names, first_certificate
from ottla.security.tls import (
    TlsError,
    TlsOptions,
    client_context,
    key_store_pem,
    server_context,
)


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """What was read."""

    options: TlsOptions
    context: ssl.SSLContext
    """For connections that are accepted."""
    client: ssl.SSLContext | None
    """How other brokers connect to this listener; None on any other listener."""
    certificate: bytes | None
    """The own one, in DER; None if it cannot be told from the key store."""
    ends_s: int | None
    """When it expires, in s since 1970; None if that is not known."""


def load_tls(options: TlsOptions, *, is_between_brokers: bool = False) -> ListenerTls:
    """Reads the files. Raises TlsError."""
    context = server_context(options)
    pem = key_store_pem(options)
    client = client_context(replace(options, checks_host=False)) if is_between_brokers else None
    return ListenerTls(options, context, client, first_certificate(pem), certificate_ends_s(pem))


def first_tls(options: TlsOptions, old: ListenerTls) -> ListenerTls:
    """Reads the files for a listener that nobody has used yet. Raises TlsError."""
    return load_tls(options, is_between_brokers=old.client is not None)


def replaced_tls(options: TlsOptions, old: ListenerTls) -> ListenerTls:
    """Reads the files for a listener that runs. Raises TlsError if they must not replace `old`."""
    new = load_tls(options, is_between_brokers=old.client is not None)
    if old.options.trust_store is None and options.trust_store is not None:
        raise TlsError(
            "Cannot add SSL truststore to an existing listener for which no truststore was "
            "configured."
        )
    if old.certificate is not None and new.certificate is not None:
        try:
            check_same_names(
                new.certificate,
                old.certificate,
                may_change_name=options.may_change_name,
                may_lose_names=options.may_lose_names,
            )
        except (NotSameError, ValueError) as error:
            raise TlsError(str(error)) from None
    if old.client is not None and new.client is not None:
        _check_handshake(old.context, new.client, "the certificate from before")
        _check_handshake(new.context, old.client, "the new certificate")
    return new


def _check_handshake(server: ssl.SSLContext, client: ssl.SSLContext, whose: str) -> None:
    """Raises TlsError if they do not agree."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        # A flight or two from each end; then the last message of TLS 1.3 is read.
        for _ in range(4):
            for end in list(ends):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                ends.remove(end)
            if not ends:
                return
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason
        raise TlsError(f"other brokers could not connect: {whose} is refused: {reason}") from None
    raise TlsError("other brokers could not connect: the handshake does not end")
