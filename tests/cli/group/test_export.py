"""`ottla group export`: lines for a file, or JSON."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import groups
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.groups import Group


@pytest.fixture
def cluster() -> Any:
    group = Group("g", "empty", "classic", None, 2, False, ())
    fake = FakeCluster(groups({"g": group}, {"g": {("u", 0): 4, ("t", 1): 7}}))
    return SimpleNamespace(client=fake.client())


def test_offsets_are_lines_by_topic(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["group", "export", "g"], cluster) == 0
    assert capsys.readouterr().out == "t,1,7\nu,0,4\n"


def test_only_the_named_topics(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["group", "export", "g", "-t", "t", "--json"], cluster) == 0
    assert json.loads(capsys.readouterr().out) == [{"topic": "t", "partition": 1, "offset": 7}]
