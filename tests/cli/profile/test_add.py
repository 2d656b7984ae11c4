"""`ottla profile`: from the first profile to the last, and no password on the screen."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ottla.cli.app import carry_out
from ottla.client.profiles import read_profiles

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    return path


def profile(*words: str) -> int:
    return carry_out(["profile", *words])


def test_profiles_are_added_chosen_and_removed(file: Path, capsys: Captured) -> None:
    profile("list")
    assert "No profiles yet" in capsys.readouterr().err
    profile("add", "dev", "-b", "localhost:9092")
    profile("add", "prod", "-b", "a:1,b:2", "--client-config", "security.protocol=SSL")
    assert "Saved profile dev, the current one, in " in capsys.readouterr().out
    profile("use", "prod")
    assert capsys.readouterr().out == "Commands use prod now: a:1,b:2.\n"
    profile("list", "--json")
    assert json.loads(capsys.readouterr().out) == [
        {"profile": "dev", "bootstrap": "localhost:9092", "current": False},
        {"profile": "prod", "bootstrap": "a:1,b:2", "current": True},
    ]
    profile("list")
    assert capsys.readouterr().out.splitlines()[2].split() == ["prod", "a:1,b:2", "current"]
    profile("remove", "prod")
    assert read_profiles(file).current is None
    assert profile("show") == 1
    assert "no profile is current" in capsys.readouterr().err


def test_passwords_are_asked_for_and_never_shown(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("geheim\n"))
    words = ("-b", "a:1", "--client-config", "sasl.username=u", "--secret", "sasl.password")
    profile("add", "prod", *words)
    assert read_profiles(file).by_name["prod"].client == {
        "sasl.username": "u",
        "sasl.password": "geheim",
    }
    profile("show", "prod")
    profile("show", "--json")
    printed = capsys.readouterr()
    assert "geheim" not in printed.out + printed.err
    assert "(hidden)" in printed.out
    assert profile("add", "other", "-b", "a:1", "--secret", "sasl.password") == 2
    assert "no line for --secret" in capsys.readouterr().err


def test_a_profile_keeps_the_address_of_a_registry(file: Path, capsys: Captured) -> None:
    address = "http://me:geheim@registry:8081"
    profile("add", "prod", "-b", "a:1", "--registry", address)
    assert read_profiles(file).by_name["prod"].registry == address
    profile("show")
    profile("show", "--json")
    printed = capsys.readouterr().out
    assert "http://(hidden)@registry:8081" in printed
    assert "geheim" not in printed
    file.chmod(0o644)
    assert profile("list") == 1
    assert "has passwords" in capsys.readouterr().err
    assert profile("add", "x", "-b", "a:1", "--registry", "registry:8081") == 2
    assert "--registry must be http" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "dev", "-b", "b:1"], 1, "'dev' already exists"),
        (["add", "bad"], 2, "Missing option '--bootstrap'"),
        (["add", "bad", "-b", "a:x"], 2, "bootstrap must be HOST:PORT"),
        (["add", "bad", "-b", "a:1", "--client-config", "x=1", "--secret", "x"], 2, "both set x"),
        (["add", "", "-b", "a:1"], 2, "cannot have the name"),
        (["use", "dve"], 1, "no profile 'dve'. Did you mean 'dev'"),
        (["remove", "x"], 1, "no profile 'x'"),
    ],
)
def test_what_is_wrong_is_refused(words: list[str], code: int, said: str, capsys: Captured) -> None:
    profile("add", "dev", "-b", "a:1")
    assert profile(*words) == code
    assert said in capsys.readouterr().err


def test_a_profile_can_be_replaced(file: Path) -> None:
    profile("add", "dev", "-b", "a:1")
    assert profile("add", "dev", "-b", "b:1", "--replace") == 0
    assert read_profiles(file).by_name["dev"].bootstrap == "b:1"
