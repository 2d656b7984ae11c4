"""`ottla mirror`: what its options and its file mean together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import carry_out
from ottla.cli.mirror import wanted
from ottla.client.profiles import Profile, Profiles, write_profiles

NONE: dict[str, Any] = {"exclude": (), "prefix": None, "groups": (), "acls": False}


def test_options_come_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mirror.toml"
    path.write_text('source = "old"\ntopics = ["a"]\nprefix = "x."\nacls = true\nname = "n"\n')
    found = wanted(str(path), (), False, None, NONE)
    assert (found.source, found.spec.topics, found.spec.prefix) == ("old", ("a",), "x.")
    assert found.spec.with_acls
    found = wanted(str(path), ("b", "c"), True, "h:1", {**NONE, "prefix": "y."})
    assert (found.source, found.spec.topics, found.spec.prefix) == ("h:1", ("b", "c"), "y.")
    assert found.spec.groups == ()
    assert found.spec.name == "n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--source is missing"),
        (["--source", "h:1", "--groups", "a", "--no-groups"], "exclude each other"),
        (["--source", "h:1", "--commit-every", "0"], "must be 0.05 or more"),
        (["--source", "h:1", "--commit-every", "30"], "must be 10 or less"),
        (["--source", "h:1", "--refresh-every", "inf"], "must be 3600 or less"),
        (["--source", "h:1", "--name", "a b"], "name must have"),
        (["--source", "h:1", "("], "'(' is not a regular expression"),
        (["--source", "h:1", "--file", "no.toml"], "cannot read no.toml"),
        (["--source", "a:b"], "--source must be HOST:PORT, not 'a:b'"),
        (["--source", "h:1", "-b", "a:b"], "--bootstrap must be HOST:PORT, not 'a:b'"),
        (["--source", "h:1", "--source-config", "x=1"], "--source-config: No such"),
        (["--source", "h:1", "--client-config", "x=1"], "--client-config: No such"),
    ],
)
def test_wrong_usage(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["mirror", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_source_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["mirror", "--source", "127.0.0.1:1"]) == 1
    said = capsys.readouterr().err
    assert "connection refused, at the source." in said
    assert "give another address with --source HOST:PORT" in said


@pytest.mark.parametrize("name", ["old", ""])
@pytest.mark.parametrize("current", [None, "here"])
def test_a_profile_that_does_not_exist(
    name: str,
    current: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty name is not the profile that commands use without one."""
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    if current is not None:
        write_profiles(path, Profiles({current: Profile("127.0.0.1:1", {})}, current))
    assert carry_out(["mirror", "--source", name]) == 1
    assert f"there is no profile '{name}'" in capsys.readouterr().err


def test_a_source_by_its_profile_and_a_target_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "profiles.toml"
    write_profiles(path, Profiles({"old": Profile("127.0.0.1:2", {})}, None))
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    assert carry_out(["mirror", "--source", "old", "-b", "127.0.0.1:1"]) == 1
    assert "cannot reach a broker at 127.0.0.1:2" in capsys.readouterr().err
