"""TLS and SASL of a connection, against a server with Python's own TLS."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.client.certificates import WAIT_S, self_signed, server_context

from ottla.client.client import Client
from ottla.client.errors import SecurityError, SettingsError
from ottla.client.login import SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.client.question import Question
from ottla.client.security import security_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of

API_VERSIONS = 18
USER, PASSWORD = "anna", "se=cr,et"
SALT, ITERATIONS = b"salt", 4096


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1, with its key beside it."""
    return self_signed(tmp_path_factory.mktemp("certificate"))


class Server:
    """One SASL exchange on one connection, then an answer to ApiVersions."""

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self._first = b""

    def answer(self, key: int, request: Any) -> Any:
        if key == SASL_HANDSHAKE:
            build = messages_of(SASL_HANDSHAKE, 1)
            known = request.mechanism == self.mechanism
            code = ErrorCode.none if known else ErrorCode.unsupported_sasl_mechanism
            return build.SaslHandshakeResponse(error_code=code, mechanisms=(self.mechanism,))
        if key == SASL_AUTHENTICATE:
            given = bytes(request.auth_bytes)
            reply = self._plain(given) if self.mechanism == "PLAIN" else self._scram(given)
            code = ErrorCode.none if reply is not None else ErrorCode.sasl_authentication_failed
            return messages_of(SASL_AUTHENTICATE, 0).SaslAuthenticateResponse(
                error_code=code,
                error_message=None if reply is not None else "Authentication failed",
                auth_bytes=reply or b"",
            )
        build = messages_of(API_VERSIONS, 0)
        itself = build.ApiVersion(api_key=API_VERSIONS, min_version=0, max_version=0)
        return build.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(itself,))

    def _plain(self, given: bytes) -> bytes | None:
        return b"" if given == f"\0{USER}\0{PASSWORD}".encode() else None

    def _scram(self, given: bytes) -> bytes | None:
        """RFC 5802, section 3."""
        name = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[self.mechanism]
        if not self._first:
            bare = given.removeprefix(b"n,,")
            nonce = bare.partition(b"r=")[2] + b"more"
            first = b"r=%s,s=%s,i=%d" % (nonce, b64encode(SALT), ITERATIONS)
            self._first = bare + b"," + first
            return first
        without_proof, _, proof = given.partition(b",p=")
        signed = self._first + b"," + without_proof
        salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), SALT, ITERATIONS)
        stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
        signature = hmac.digest(stored, signed, name)
        pairs = zip(b64decode(proof), signature, strict=True)
        if hashlib.new(name, bytes(one ^ other for one, other in pairs)).digest() != stored:
            return None
        server_key = hmac.digest(salted, b"Server Key", name)
        return b"v=" + b64encode(hmac.digest(server_key, signed, name))


@contextmanager
def listening(mechanism: str = "PLAIN", certificate: Path | None = None) -> Iterator[str]:
    server = Server(mechanism)

    def serve(accepted: socket.socket) -> None:
        if certificate is not None:
            try:
                accepted = server_context(certificate).wrap_socket(accepted, server_side=True)
            except OSError:
                return  # the client refused the certificate
        with accepted:
            while size := accepted.recv(4):
                frame = accepted.recv(int.from_bytes(size))
                header = read_request_header(frame)
                response = server.answer(header.key, read_request_body(header, frame))
                accepted.sendall(b"".join(write_response(response, header.correlation_id)))

    def run() -> None:
        accepted, _ = listener.accept()
        with accepted:
            serve(accepted)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        yield "127.0.0.1:{1}".format(*listener.getsockname())
        thread.join(WAIT_S)
        assert not thread.is_alive()


def asked(address: str, **settings: str) -> Any:
    """The answer to ApiVersions on a connection with these settings, `_` for `.` in names."""
    question = Question(API_VERSIONS, 0, lambda messages: messages.ApiVersionsRequest())
    named = {name.replace("_", "."): value for name, value in settings.items()}
    with Client(address, named) as client:
        return client.ask_any(question)


def user(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
        "sasl_password": password,
    }


def test_tls_with_a_trusted_certificate(certificate: Path) -> None:
    with listening(certificate=certificate) as address:
        response = asked(address, security_protocol="ssl", ssl_ca_location=str(certificate))
    assert response.error_code is ErrorCode.none
    with listening(certificate=certificate) as address:
        response = asked(address, security_protocol="ssl", ssl_ca_pem=certificate.read_text())
    assert response.error_code is ErrorCode.none


def test_an_unknown_certificate_is_refused_unless_nothing_is_verified(certificate: Path) -> None:
    with (
        listening(certificate=certificate) as address,
        pytest.raises(SecurityError, match=r"certificate of 127.0.0.1 is refused: self-signed"),
    ):
        asked(address, security_protocol="ssl")
    with listening(certificate=certificate) as address:
        asked(address, security_protocol="ssl", enable_ssl_certificate_verification="false")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_over_tls(certificate: Path, mechanism: str) -> None:
    with listening(mechanism, certificate) as address:
        security = {"security_protocol": "SASL_SSL", "ssl_ca_location": str(certificate)}
        assert asked(address, **user(mechanism) | security).error_code is ErrorCode.none


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(mechanism: str) -> None:
    with (
        listening(mechanism) as address,
        pytest.raises(SecurityError, match="the SASL authentication: Authentication failed"),
    ):
        asked(address, **user(mechanism, "wrong"))


def test_a_mechanism_that_the_broker_does_not_offer() -> None:
    with (
        listening("SCRAM-SHA-256") as address,
        pytest.raises(SecurityError, match="does not offer PLAIN; it offers SCRAM-SHA-256"),
    ):
        asked(address, **user("PLAIN"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"security.protocol": "tls"}, "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"security.protocol": "sasl_ssl"}, "cannot use sasl.mechanism=GSSAPI"),
        (
            {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN"},
            "PLAIN needs sasl.username",
        ),
        ({"security.protocol": "ssl", "ssl.ca.location": "/nowhere"}, "no certificates in /now"),
        (
            {"security.protocol": "ssl", "ssl.certificate.location": "/nowhere"},
            "cannot use the certificate /nowhere",
        ),
        (
            {"security.protocol": "ssl", "ssl.keystore.location": "store.p12"},
            "use ssl.certificate.location and ssl.key.location",
        ),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        security_of(settings)


def test_without_security_settings_a_connection_is_plain() -> None:
    security = security_of({"bootstrap.servers": "h:1", "client.id": "x"})
    assert (security.tls, security.sasl) == (None, None)
