"""`ottla profile`: from the first profile to the last, and no password on the screen."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ottla.cli import profile
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.profiles import read_profiles
from ottla.client.errors import AddressError


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    return path


def test_profiles_are_added_chosen_and_removed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile.list_profiles()
    assert "No profiles yet" in capsys.readouterr().err
    profile.add("dev", "localhost:9092")
    profile.add("prod", "a:1,b:2", ["security.protocol=SSL"])
    assert "Saved profile dev, the current one, in " in capsys.readouterr().out
    profile.use("prod")
    profile.list_profiles(as_json=True)
    out = capsys.readouterr().out
    assert json.loads(out[out.index("[") :]) == [
        {"profile": "dev", "bootstrap": "localhost:9092", "current": False},
        {"profile": "prod", "bootstrap": "a:1,b:2", "current": True},
    ]
    profile.list_profiles()
    assert capsys.readouterr().out.splitlines()[2].split() == ["prod", "a:1,b:2", "current"]
    profile.remove("prod")
    assert read_profiles(file).current is None
    with pytest.raises(Failed, match="no profile is current"):
        profile.show()


def test_passwords_are_asked_for_and_never_shown(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("geheim\n"))
    profile.add("prod", "a:1", ["sasl.username=u"], ["sasl.password"])
    assert read_profiles(file).by_name["prod"].client == {
        "sasl.username": "u",
        "sasl.password": "geheim",
    }
    profile.show("prod")
    profile.show(as_json=True)
    printed = capsys.readouterr()
    assert "geheim" not in printed.out + printed.err
    assert "(hidden)" in printed.out
    with pytest.raises(UsageFailed, match="no line for --secret"):
        profile.add("other", "a:1", secret=["sasl.password"])


def test_what_is_wrong_is_refused(file: Path) -> None:
    profile.add("dev", "a:1")
    with pytest.raises(Failed, match="'dev' already exists"):
        profile.add("dev", "b:1")
    profile.add("dev", "b:1", replace=True)
    assert read_profiles(file).by_name["dev"].bootstrap == "b:1"
    with pytest.raises(AddressError, match="bootstrap must be HOST:PORT"):
        profile.add("bad", "a:x")
    with pytest.raises(UsageFailed, match="both set x"):
        profile.add("bad", "a:1", ["x=1"], ["x"])
    with pytest.raises(UsageFailed, match="cannot have the name"):
        profile.add("", "a:1")
    with pytest.raises(Failed, match=r"no profile 'dve'\. Did you mean 'dev'"):
        profile.use("dve")
    with pytest.raises(Failed, match="no profile 'x'"):
        profile.remove("x")
