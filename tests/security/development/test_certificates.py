"""Certificates that Python's own TLS accepts, and files that nobody overwrites unasked."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ottla.security.development import certificates
from ottla.security.development.certificates import (
    PUBLIC_MODE,
    CertificateError,
    Signed,
    check_installed,
    facts_of,
    issue,
    make_authority,
    read_authority,
    write,
)

WITHIN_S = 20


@pytest.fixture(scope="module")
def authority() -> Signed:
    return make_authority("the authority", 10)


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """The client's subject as the server sees it; raises what the client meets."""
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.settimeout(WITHIN_S)
    seen: list[object] = []

    def serve() -> None:
        try:
            with server.wrap_socket(ours, server_side=True) as secured:
                seen.append(secured.getpeercert())
        except OSError:
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(theirs, server_hostname=host) as secured:
            secured.recv(1)
    finally:
        theirs.close()
        thread.join(WITHIN_S)
    return str(seen[0])


def contexts(
    folder: Path, authority: Signed, broker: Signed, client: Signed
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    for name, data in (
        ("authority.pem", authority.certificate),
        ("broker.pem", broker.together),
        ("client.pem", client.together),
    ):
        write(folder / name, data)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "broker.pem")
    server.load_verify_locations(folder / "authority.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    strict = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    strict.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 and later
    strict.load_cert_chain(folder / "client.pem")
    return server, strict


@pytest.mark.parametrize("host", ["kafka.example.org", "127.0.0.1", "::1"])
def test_both_sides_believe_each_other(tmp_path: Path, authority: Signed, host: str) -> None:
    hosts = ["kafka.example.org", "127.0.0.1", "[::1]"]
    made = issue(authority, "broker", hosts, 5), issue(authority, "alice", [], 5)
    assert "alice" in shaken_hands(*contexts(tmp_path, authority, *made), host)


def test_another_host_is_refused(tmp_path: Path, authority: Signed) -> None:
    made = issue(authority, "broker", ["localhost"], 5), issue(authority, "alice", [], 5)
    server, client = contexts(tmp_path, authority, *made)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        shaken_hands(server, client, "kafka.example.org")


def test_what_a_certificate_says(authority: Signed) -> None:
    made = issue(authority, "broker, the first", ["localhost", "10.0.0.5"], 20)
    (facts,) = facts_of(made.together)
    assert facts.subject == "CN=broker\\, the first"
    assert facts.issuer == "CN=the authority"
    assert facts.names == ("localhost", "10.0.0.5")
    assert not facts.is_authority
    now = datetime.now(UTC)
    assert facts.not_before < now
    assert facts.days_left(facts.not_after - timedelta(days=3)) == 3
    assert facts.days_left(facts.not_after + timedelta(days=1)) == -1
    (own,) = facts_of(authority.certificate)
    assert own.is_authority
    assert own.subject == own.issuer


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "own.key"
    write(path, b"one")
    with pytest.raises(CertificateError, match="exists"):
        write(path, b"two")
    assert path.read_bytes() == b"one"
    write(path, b"two", replace=True)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["own.key"]
    write(tmp_path / "public.pem", b"", mode=PUBLIC_MODE)
    assert (tmp_path / "public.pem").stat().st_mode & 0o777 == 0o644 & ~umask()


def umask() -> int:
    import os

    now = os.umask(0)
    os.umask(now)
    return now


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CertificateError, match="cannot write"):
        write(tmp_path / "file" / "own.key", b"")
    with pytest.raises(CertificateError, match="cannot read"):
        read_authority(tmp_path / "no.key", tmp_path / "no.pem")


def test_a_key_of_another_authority(tmp_path: Path, authority: Signed) -> None:
    other = make_authority("another", 5)
    for key, why in ((other.key, "not that of its certificate"), (b"x", "cannot be read")):
        with pytest.raises(CertificateError, match=why):
            issue(Signed(key, authority.certificate), "alice", [], 5)


@pytest.mark.parametrize("host", ["höst.example", "", "a" * 300])
def test_a_host_that_no_certificate_can_name(authority: Signed, host: str) -> None:
    with pytest.raises(CertificateError):
        issue(authority, "", [host], 5)


@pytest.mark.parametrize("name", ["", "a" * 65])
def test_a_name_that_no_certificate_can_have(name: str) -> None:
    with pytest.raises(CertificateError, match="1 to 64 characters"):
        make_authority(name, 5)


def test_no_certificate_at_all(authority: Signed) -> None:
    with pytest.raises(CertificateError, match="no certificate in PEM"):
        facts_of(authority.key)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "find_spec", lambda name: None)
    with pytest.raises(CertificateError) as failed:
        check_installed()
    assert "pip install 'ottla[secure]'" in str(failed.value.hint)
