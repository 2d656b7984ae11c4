"""The profile of `ottla serve --secure`, and what is said of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.secured_broker import introduction, secured, write_profile
from ottla.client.profiles import Profile, profiles_file, read_profiles, write_profiles
from ottla.security.development.certificates import facts_of
from ottla.security.development.secure_folder import SecureFolder


def folder(path: Path, *made: str) -> SecureFolder:
    return SecureFolder(path, {"admin": "secret", "broker": "other"}, made)


def test_each_folder_has_its_profile(tmp_path: Path) -> None:
    foreign = Profile("elsewhere:1", {"sasl.password": "x"})
    profiles = read_profiles(profiles_file())
    profiles.by_name["secure-2"] = foreign
    write_profiles(profiles_file(), profiles)
    assert write_profile(folder(tmp_path / "a"), "127.0.0.1:1") == "secure"
    assert write_profile(folder(tmp_path / "b"), "127.0.0.1:2") == "secure-3"
    assert write_profile(folder(tmp_path / "a"), "127.0.0.1:3") == "secure"
    found = read_profiles(profiles_file())
    assert found.by_name["secure-2"] == foreign
    assert found.by_name["secure"].bootstrap == "127.0.0.1:3"
    assert found.by_name["secure"].client["ssl.ca.location"] == str(tmp_path / "a/authority.pem")
    assert found.current is None


def test_the_password_is_said_once(tmp_path: Path) -> None:
    warned: list[str] = []
    first = introduction(folder(tmp_path, "the user admin"), "127.0.0.1:1", warned.append)
    second = introduction(folder(tmp_path), "127.0.0.1:1", warned.append)
    assert any("secret" in line for line in first)
    assert not any("secret" in line for line in second)
    renewed = folder(tmp_path, "a certificate (the one before was not for admin.example.org)")
    assert not any("secret" in line for line in introduction(renewed, "127.0.0.1:1", warned.append))
    assert str(tmp_path / "client.properties") in second[0]
    assert second[-1] == "  ottla topic list --profile secure"
    assert warned == []


def test_a_file_of_profiles_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    profiles_file().write_text("[")
    warned: list[str] = []
    lines = introduction(folder(tmp_path, "the user admin"), "127.0.0.1:1", warned.append)
    assert "secret" in lines[1]
    assert len(warned) == 1
    assert "is not TOML" in warned[0]
    assert profiles_file().read_text() == "["


@pytest.mark.parametrize(
    ("addresses", "host"),
    [(["10.1.2.3:9092"], "10.1.2.3"), ([":9092", "kafka.example.org:9092"], "kafka.example.org")],
)
def test_the_certificate_is_for_what_clients_connect_to(
    addresses: list[str], host: str, tmp_path: Path
) -> None:
    (facts,) = facts_of(secured(tmp_path, addresses).certificate.read_bytes())
    assert {host, "localhost", "127.0.0.1", "::1"} <= set(facts.names)
