"""The folder of --secure: whatever a start was interrupted by, the next one completes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.config import BrokerConfig
from ottla.security.development import certificates
from ottla.security.development import secure_folder as module
from ottla.security.development.certificates import CertificateError, Signed, is_signed_by, issue
from ottla.security.development.secure_folder import (
    PROTOCOL,
    SecureFolder,
    secure_folder,
)
from ottla.security.sasl.scram_users import parse_scram_users
from ottla.security.tls import TlsOptions, client_context, server_context

HOSTS = ["localhost", "127.0.0.1"]
FILES = {"authority.key", "authority.pem", "broker.pem", "client.properties", "passwords.json"}
SECRETS = FILES - {"authority.pem"}


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def usable(found: SecureFolder) -> bool:
    """Whether a broker starts with it: its own checks, and its TLS."""
    own = {"listeners": f"{PROTOCOL}://127.0.0.1:0", **found.broker_settings()}
    config = BrokerConfig.from_properties(own)
    names = [user.name for user in parse_scram_users(config.ottla_first_users or "")]
    server_context(TlsOptions(key_store=str(found.certificate)))
    client_context(TlsOptions(trust_store=str(found.authority)))
    signed = is_signed_by(found.certificate.read_bytes(), found.authority.read_bytes())
    return names == ["admin", "broker"] and signed


def test_the_second_time_nothing_changes(tmp_path: Path) -> None:
    first = secure_folder(tmp_path / "secure", HOSTS)
    before = contents(first.path)
    assert usable(first)
    assert first.made == ("the user admin", "an authority", "a certificate")
    assert set(before) == FILES
    for name in SECRETS:
        assert (first.path / name).stat().st_mode & 0o777 == 0o600, name
    second = secure_folder(tmp_path / "secure", HOSTS)
    assert second.made == ()
    assert second.passwords == first.passwords
    assert contents(second.path) == before


def interrupt(written: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that ends after so many files."""
    left = written

    def interrupted(*arguments: Any, **options: Any) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        certificates.write(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            secure_folder(folder, HOSTS)


@pytest.mark.parametrize("written", range(5))
def test_an_interrupted_start(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(written, tmp_path, monkeypatch)
    there = contents(tmp_path)
    assert len(there) == written
    found = secure_folder(tmp_path, HOSTS)
    assert usable(found)
    if "passwords.json" in there:
        assert json.loads(there["passwords.json"]) == found.passwords


@pytest.mark.parametrize("gone", [("authority.key", "broker.pem"), ("authority.pem",)])
@pytest.mark.parametrize("written", range(3))
def test_an_interrupted_start_without_a_part_of_the_authority(
    gone: tuple[str, ...], written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure_folder(tmp_path, HOSTS)
    for name in gone:
        (tmp_path / name).unlink()
    interrupt(written, tmp_path, monkeypatch)
    assert usable(secure_folder(tmp_path, HOSTS))


def test_another_host_needs_another_certificate(tmp_path: Path) -> None:
    first = secure_folder(tmp_path, HOSTS)
    before = contents(tmp_path)
    second = secure_folder(tmp_path, [*HOSTS, "[::1]", "kafka.example.org"])
    assert second.made == ("a certificate (the one before was not for [::1], kafka.example.org)",)
    changed = {name for name, data in contents(tmp_path).items() if data != before[name]}
    assert changed == {"broker.pem"}
    assert second.passwords == first.passwords
    assert usable(second)


def test_a_certificate_that_expires_is_replaced(tmp_path: Path) -> None:
    found = secure_folder(tmp_path, HOSTS)
    authority = Signed((tmp_path / "authority.key").read_bytes(), found.authority.read_bytes())
    found.certificate.write_bytes(issue(authority, "broker", HOSTS, 20).together)
    assert secure_folder(tmp_path, HOSTS).made == ("a certificate (the one before expires)",)
    assert secure_folder(tmp_path, HOSTS).made == ()


def test_a_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    older, newer = (secure_folder(tmp_path / name, HOSTS) for name in ("older", "newer"))
    newer.authority_key.write_bytes(older.authority_key.read_bytes())
    newer.authority.write_bytes(older.authority.read_bytes())
    reason = "a certificate (the one before was of another authority)"
    assert secure_folder(newer.path, HOSTS).made == (reason,)
    assert secure_folder(newer.path, HOSTS).made == ()


def test_an_authority_whose_key_is_elsewhere_is_left_alone(tmp_path: Path) -> None:
    secure_folder(tmp_path, HOSTS)
    (tmp_path / "authority.key").unlink()
    before = contents(tmp_path)
    assert secure_folder(tmp_path, HOSTS).made == ()
    assert contents(tmp_path) == before


def test_without_cryptography_what_was_made_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure_folder(tmp_path / "made", HOSTS)
    monkeypatch.setattr(certificates, "find_spec", lambda name: None)
    assert secure_folder(tmp_path / "made", HOSTS).made == ()
    with pytest.raises(CertificateError) as failed:
        secure_folder(tmp_path / "other", HOSTS)
    assert "ottla[secure]" in str(failed.value.hint)


@pytest.mark.parametrize("text", ["", "[]", '{"admin": "x"}'])
def test_a_foreign_file_of_passwords(text: str, tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text(text)
    with pytest.raises(CertificateError, match="was not written by --secure"):
        secure_folder(tmp_path, HOSTS)
