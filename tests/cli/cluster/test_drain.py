"""What a drain requests and prints."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import moved, moving
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.cli.cluster.drain import Drained, drain_broker
from ottla.cli.failures import Failed
from ottla.client.admin.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    Move,
    Reassignment,
)
from ottla.client.client import Client


def test_moves_are_counted_by_target(capsys: pytest.CaptureFixture[str]) -> None:
    moved = [
        Move("a", 0, [1, 2], [3, 2]),
        Move("a", 1, [1, 3], [2, 3]),
        Move("b", 0, [2, 1], [2, 3]),
    ]
    Drained(1, True, moved).show()
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "Moved 3 replicas of 2 topics off broker 1:"
    assert [line.split() for line in lines[2:]] == [["2", "1"], ["3", "2"]]
    assert "holds no replicas now" in shown.err


def test_an_empty_broker_has_nothing_to_move(capsys: pytest.CaptureFixture[str]) -> None:
    Drained(7, True, []).show()
    assert capsys.readouterr().out == "Broker 7 holds no replicas.\n"


def moving_nothing() -> FakeCluster:
    return FakeCluster({LIST_PARTITION_REASSIGNMENTS: [moving(dict)]})


def client_of_three_brokers(cluster: FakeCluster, **options: Any) -> Client:
    """A topic on brokers 1 and 2 of three."""
    cluster.brokers = [1, 2, 3]
    cluster.leaders = {("flights", 0): 1}
    return cluster.client(**options)


def test_ctrl_c_leaves_the_moves_running_and_prints_that(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []
    under_way = {("flights", 0): Reassignment((1, 2, 3), (3,), (1,))}
    cluster = moving_nothing()
    cluster.answers[LIST_PARTITION_REASSIGNMENTS] = [
        cluster.answers[LIST_PARTITION_REASSIGNMENTS][0],
        moving(lambda: under_way),
    ]
    cluster.answers[ALTER_PARTITION_REASSIGNMENTS] = [moved(lambda *move: asked.append(move))]

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    client = client_of_three_brokers(cluster, sleep=interrupted)
    with pytest.raises(KeyboardInterrupt):
        drain_broker(client, 1, dry_run=False, quiet=False, timeout_s=5)
    assert asked == [("flights", 0, (3, 2))]
    assert "The brokers continue the move" in capsys.readouterr().err


def test_what_was_moved_is_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = SimpleNamespace(client=client_of_three_brokers(moving_nothing()))
    assert carry_out(["cluster", "drain", "1", "--dry-run", "--json"], cluster) == 0
    assert json.loads(capsys.readouterr().out) == {
        "broker": 1,
        "done": False,
        "moved": [{"topic": "flights", "partition": 0, "from": [1, 2], "to": [3, 2]}],
    }


def test_an_unknown_broker() -> None:
    client = client_of_three_brokers(moving_nothing())
    with pytest.raises(Failed, match="there is no broker '7'"):
        drain_broker(client, 7, dry_run=True, quiet=False, timeout_s=5)


def test_a_drain_that_cannot_end_moves_nothing_and_says_what_to_do() -> None:
    cluster = moving_nothing()
    client = client_of_three_brokers(cluster)
    cluster.leaders = {("__consumer_offsets", 0): 1}
    cluster.replicas = {("__consumer_offsets", 0): (1, 2, 3)}
    with pytest.raises(Failed, match=r"__consumer_offsets \(1\) have replicas on every") as caught:
        drain_broker(client, 1, dry_run=False, quiet=False, timeout_s=5)
    assert "ottla cluster add" in str(caught.value.hint)
    assert cluster.requests(ALTER_PARTITION_REASSIGNMENTS) == []
