"""`ottla config describe`: which settings are shown."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.app import carry_out
from ottla.cli.config import describe
from ottla.cli.configs import Setting

ENTRY = Setting("retention.ms", "5", "topic")
DEFAULT = Setting("segment.ms", "5", "default")
SECRET = Setting("ssl.key.password", None, "default", sensitive=True)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    entries = [ENTRY, DEFAULT, SECRET]
    monkeypatch.setattr(describe, "describe_configs", lambda *_: {"t": entries})
    return SimpleNamespace(connection=SimpleNamespace(existing_topics=lambda names: names))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ["retention.ms"]),
        (["--all"], ["retention.ms", "segment.ms", "ssl.key.password"]),
        (["segment.ms"], ["segment.ms"]),
        (["segment.ms", "--all"], ["segment.ms"]),
    ],
)
def test_named_settings_or_those_that_differ(
    words: list[str], shown: list[str], cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["config", "describe", "topic", "t", *words, "--json"], cluster) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["name"]) == ("topic", "t")
    assert [each["name"] for each in document["settings"]] == shown


def test_a_password_is_hidden(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["config", "describe", "topic", "t", "--all"], cluster) == 0
    heading, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert heading == ["setting", "value", "from"]
    assert rows[0] == ["retention.ms", "5", "topic"]
    assert rows[2][1] == "(hidden)"


def test_a_typing_error_is_corrected(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["config", "describe", "topic", "t", "retention.m"], cluster) == 1
    assert "Did you mean 'retention.ms'?" in capsys.readouterr().err


def test_all_defaults_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(describe, "describe_configs", lambda *_: {"t": [DEFAULT]})
    assert carry_out(["config", "describe", "topic", "t"], cluster) == 0
    assert "topic t has only default settings" in capsys.readouterr().err
