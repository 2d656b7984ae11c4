"""What a drain tells, and what it takes for the present assignment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.cluster_drain import current_assignments, show_drained


def test_replicas_that_are_leaving_already_do_not_count() -> None:
    partitions = {
        0: SimpleNamespace(replicas=[1, 2, 3]),
        1: SimpleNamespace(replicas=[2, 3]),
    }
    connection: Any = SimpleNamespace(
        topics=lambda: {"flights": SimpleNamespace(partitions=partitions)}
    )
    under_way = {("flights", 0): SimpleNamespace(removing_replicas=(1,))}
    assert current_assignments(connection, under_way) == {"flights": [[2, 3], [2, 3]]}


def test_what_went_where_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    moved = [
        {"topic": "a", "partition": 0, "from": [1, 2], "to": [3, 2]},
        {"topic": "a", "partition": 1, "from": [1, 3], "to": [2, 3]},
        {"topic": "b", "partition": 0, "from": [2, 1], "to": [2, 3]},
    ]
    show_drained({"broker": 1, "done": True, "moved": moved})
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "Moved 3 replicas of 2 topics off broker 1:"
    assert [line.split() for line in lines[2:]] == [["2", "1"], ["3", "2"]]
    assert "holds no replicas now" in shown.err


def test_nothing_to_move_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show_drained({"broker": 7, "done": True, "moved": []})
    assert capsys.readouterr().out == "Broker 7 holds no replicas.\n"
