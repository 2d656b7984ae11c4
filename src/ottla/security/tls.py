"""TLS contexts from PEM: files, or texts inside the settings (KIP-651).

As Kafka's DefaultSslEngineFactory. A key store is one PEM file with the private key, encrypted or
not, and the certificates that lead from it to the authority; a trust store is one with authorities.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ottla.security.certificate_dates import certificate_ends_s
from ottla.security.cipher_suites import ciphers_of, is_of_tls_1_3

VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


class TlsError(Exception):
    """These certificates or keys cannot be used. The one-line text names the setting."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Where the certificates of one listener are, and what it agrees to."""

    key_store: str | None = None
    """A PEM file, or the text of one; None: no key."""
    trust_store: str | None = None
    """As above; None: the machine's own authorities."""
    key_store_is_file: bool = True
    trust_store_is_file: bool = True
    key_password: str | None = None
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    """Names of the standard or of OpenSSL; empty: OpenSSL's own choice."""
    client_auth: str = "none"
    checks_host: bool = True
    """Of a client's context: the server's certificate must be of the host that was connected to."""
    may_change_name: bool = False
    """A changed key store may have a certificate of another subject."""
    may_lose_names: bool = False
    """And one that lacks some of its alternative names."""

    @property
    def files(self) -> tuple[str, ...]:
        """Files whose change makes a new context necessary."""
        stores = (
            (self.key_store, self.key_store_is_file),
            (self.trust_store, self.trust_store_is_file),
        )
        return tuple(store for store, is_file in stores if store is not None and is_file)


def server_context(options: TlsOptions) -> ssl.SSLContext:
    """Reads the files. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if options.key_store is None:
        raise TlsError("a TLS listener needs ssl.keystore.location, or ssl.keystore.key")
    _agree(context, options)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # Kafka's clients do not resume sessions: a ticket would only be sent.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = CLIENT_AUTH[options.client_auth]
    _load_key(context, options)
    if context.verify_mode is not ssl.CERT_NONE:
        _load_authorities(context, options)
    return context


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Reads the files; for connections to other brokers. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.checks_host
    _agree(context, options)
    if options.key_store is not None:
        _load_key(context, options)
    _load_authorities(context, options)
    return context


def key_store_pem(options: TlsOptions) -> str:
    """The text with the own certificate; empty if it cannot be read."""
    store = options.key_store
    if store is None:
        return ""
    if not options.key_store_is_file:
        return with_lines(store)
    try:
        with open(store, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def key_store_ends_s(options: TlsOptions) -> int | None:
    """When the own certificate expires, in s since 1970; None if that cannot be read."""
    return certificate_ends_s(key_store_pem(options))


def state_of_files(paths: Sequence[str]) -> tuple[object, ...]:
    """Changes when one of these files does."""
    found: list[object] = []
    for path in paths:
        try:
            state = os.stat(path)
        except OSError as error:
            found.append(error.errno)
        else:
            found.append((state.st_ino, state.st_mtime_ns, state.st_size))
    return tuple(found)


def _agree(context: ssl.SSLContext, options: TlsOptions) -> None:
    chosen = [VERSIONS[each] for each in options.protocols]
    suites = options.cipher_suites
    if suites and not any(map(is_of_tls_1_3, suites)):
        # As in Java: TLS 1.3 without any of its suites cannot be agreed upon.
        chosen = [each for each in chosen if each is not ssl.TLSVersion.TLSv1_3]
    if not chosen:
        raise TlsError("ssl.cipher.suites has no suite for ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    older = ciphers_of(suites)
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise TlsError(f"ssl.cipher.suites: OpenSSL has none of {','.join(suites)}") from None
    elif suites and min(chosen) is not ssl.TLSVersion.TLSv1_3:
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _load_key(context: ssl.SSLContext, options: TlsOptions) -> None:
    assert options.key_store is not None
    password = options.key_password

    was_asked = False

    def told_password() -> str:
        # Without this function, OpenSSL would ask for it on the terminal.
        nonlocal was_asked
        was_asked = True
        return password or ""

    name = "ssl.keystore.key"
    try:
        if options.key_store_is_file:
            name = f"ssl.keystore.location {options.key_store}"
            context.load_cert_chain(options.key_store, password=told_password)
        else:
            with _as_file(options.key_store) as path:
                context.load_cert_chain(path, password=told_password)
    except ssl.SSLError as error:
        raise TlsError(f"{name}: {_why_no_key(error, password, was_asked)}") from None
    except OSError as error:
        raise TlsError(f"{name}: {error.strerror or error}") from None


def _why_no_key(error: ssl.SSLError, password: str | None, was_asked: bool) -> str:
    reason = error.reason or ""
    if was_asked:
        if password is None:
            return "the private key is encrypted: set ssl.key.password"
        return "ssl.key.password is not the private key's"
    if reason == "KEY_VALUES_MISMATCH":
        return "the first certificate is not of the private key"
    return (
        "expected a PEM file with the private key and the certificates that lead from it to the "
        f"authority, the key's own first ({reason.lower().replace('_', ' ') or error})"
    )


def _load_authorities(context: ssl.SSLContext, options: TlsOptions) -> None:
    store = options.trust_store
    if store is None:
        context.load_default_certs()
        return
    name = f"ssl.truststore.location {store}" if options.trust_store_is_file else ""
    try:
        if options.trust_store_is_file:
            context.load_verify_locations(store)
        else:
            name = "ssl.truststore.certificates"
            context.load_verify_locations(cadata=with_lines(store))
    except ssl.SSLError:
        raise TlsError(f"{name}: expected certificates in PEM") from None
    except OSError as error:
        raise TlsError(f"{name}: {error.strerror or error}") from None


def with_lines(pem: str) -> str:
    """The same PEM with its line ends, which a text in a properties file may have lost."""
    blocks = []
    for kind, body in _PEM.findall(pem):
        if ":" in body:  # the headers of an older form of encryption, which end at lines
            text = body.strip("\n")
        else:
            digits = "".join(body.split())
            text = "\n".join(digits[at : at + _LINE] for at in range(0, len(digits), _LINE))
        blocks.append(f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
    return "".join(blocks)


@contextmanager
def _as_file(pem: str) -> Iterator[str]:
    """A path at which OpenSSL, which reads a key from files only, finds this text."""
    data = with_lines(pem).encode()
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("pem")
        try:
            os.write(number, data)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    import tempfile  # late: only some systems need it

    with tempfile.NamedTemporaryFile() as file:  # only its owner may read it
        file.write(data)
        file.flush()
        yield file.name
