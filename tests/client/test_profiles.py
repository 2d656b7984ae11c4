"""The file of profiles: what is read, what is refused, and how it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.profiles import (
    Profile,
    ProfileError,
    Profiles,
    is_secret,
    profiles_file,
    read_profiles,
    write_profiles,
)

PROD = Profile("a:1,b:2", {"sasl.password": 'p"\\\n', "enable.x": "true"})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "profiles.toml"
    assert read_profiles(path) == Profiles()
    written = Profiles({"prod": PROD, "my own": Profile("c:3")}, "prod")
    write_profiles(path, written)
    assert read_profiles(path) == written
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    written.by_name.pop("prod")
    written.current = None
    write_profiles(path, written)
    assert read_profiles(path) == written


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text(), max_size=3))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, client: dict[str, str]
) -> None:
    encodable = {name: value.encode("utf-8", "replace").decode() for name, value in client.items()}
    path = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    written = Profiles({"p\x7f": Profile("a:1", encodable)})
    write_profiles(path, written)
    assert read_profiles(path) == written


def test_a_file_edited_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(
        '[profiles.x]\nbootstrap = "h:1"\nclient = {"a.b" = 7, "c.d" = true, "e" = "f"}\n'
    )
    assert read_profiles(path).by_name == {
        "x": Profile("h:1", {"a.b": "7", "c.d": "true", "e": "f"})
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("current =", "is not TOML"),
        ("profile = 1", "'profile' is not known"),
        ("profiles = 1", "profiles a table"),
        ("current = 1", "current must be a name"),
        ('current = "x"', "the current profile 'x' does not exist"),
        ("[profiles.x]", "'x' must have bootstrap"),
        ('[profiles.x]\nbootstrap = "h"\nport = 1', "'x' must have bootstrap"),
        ('[profiles.x]\nbootstrap = "h"\nclient.sasl.password = "p"', "'sasl' of profile 'x'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(text)
    with pytest.raises(ProfileError, match=reason):
        read_profiles(path)


def test_passwords_that_others_may_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    write_profiles(path, Profiles({"prod": PROD}))
    path.chmod(0o640)
    with pytest.raises(ProfileError, match="may be read by others") as raised:
        read_profiles(path)
    assert 'p"' not in str(raised.value)
    write_profiles(path, Profiles({"open": Profile("a:1")}))
    path.chmod(0o644)
    read_profiles(path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProfileError, match="cannot write"):
        write_profiles(tmp_path / "file" / "profiles.toml", Profiles())


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match=r"no profile 'prd'\. Did you mean 'prod'"):
        Profiles({"prod": PROD}).find("prd")


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_PROFILES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    assert profiles_file() == Path("/x/ottla/profiles.toml")
    monkeypatch.setenv("OTTLA_PROFILES", "/y.toml")
    assert profiles_file() == Path("/y.toml")


def test_which_settings_are_secret() -> None:
    secret = ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"]
    assert all(map(is_secret, secret))
    assert not any(map(is_secret, ["sasl.username", "ssl.ca.location", "security.protocol"]))
