"""`ottla group export`: lines for a file, or JSON."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.app import carry_out
from ottla.cli.group import export


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(export, "existing_groups", lambda *_: {})
    monkeypatch.setattr(export, "committed_offsets", lambda *_: {("u", 0): 4, ("t", 1): 7})
    monkeypatch.setattr(export, "choose_partitions", lambda *_: [("t", 0), ("t", 1)])
    return SimpleNamespace(connection=None)


def test_offsets_are_lines_by_topic(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["group", "export", "g"], cluster) == 0
    assert capsys.readouterr().out == "t,1,7\nu,0,4\n"


def test_only_the_named_topics(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["group", "export", "g", "-t", "t", "--json"], cluster) == 0
    assert json.loads(capsys.readouterr().out) == [{"topic": "t", "partition": 1, "offset": 7}]
