"""`ottla topic offsets`: where the records of each partition begin and end."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import offsets as answered
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.offsets import LIST_OFFSETS


@pytest.fixture
def cluster() -> Any:
    place = ("t", 0)
    fake = FakeCluster({LIST_OFFSETS: [answered({place: 3}, {place: 10}, {place: 7})]})
    fake.leaders = {place: 1}
    return SimpleNamespace(client=fake.client())


def test_offsets_are_counted(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["topic", "offsets", "t", "--json"], cluster) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "topic": "t",
            "partition": 0,
            "start_offset": 3,
            "end_offset": 10,
            "offsets": 7,
            "offset_at": None,
        }
    ]


def test_the_offset_at_a_time_has_a_column_if_it_was_asked_for(
    cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["topic", "offsets", "t"], cluster) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-1] == "offsets"
    assert carry_out(["topic", "offsets", "t", "--at", "1h"], cluster) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert (heading.split()[-1], row.split()[-1]) == ("at", "7")
