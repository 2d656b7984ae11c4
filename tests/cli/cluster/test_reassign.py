"""`ottla cluster reassign`: the plan comes first, and what was requested is checked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from tests.client.answers import moved, moving
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.cli.cluster.reassign import assigned, check_together, read_brokers
from ottla.cli.failures import UsageFailed
from ottla.client.admin.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    Reassignment,
)


class Cluster:
    """Three brokers and the topic t on broker 1; a requested move happens at once."""

    def __init__(self) -> None:
        self.under_way: dict[tuple[str, int], Reassignment] = {}
        self.cancelled: list[tuple[str, int]] = []
        self.obeys = True
        fake = FakeCluster(
            {
                LIST_PARTITION_REASSIGNMENTS: [moving(lambda: self.under_way)],
                ALTER_PARTITION_REASSIGNMENTS: [moved(self.move)],
            }
        )
        fake.brokers = [1, 2, 3]
        fake.leaders = {("t", 0): 1, ("t", 1): 1}
        self.replicas = fake.replicas = {("t", 0): (1,), ("t", 1): (1,)}
        self.client = fake.client()

    def move(self, topic: str, index: int, replicas: tuple[int, ...] | None) -> None:
        if replicas is None:
            self.cancelled.append((topic, index))
        elif self.obeys:
            self.replicas[topic, index] = replicas


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def reassign(cluster: Cluster, *words: str) -> int:
    return carry_out(["cluster", "reassign", *words], cluster)


def test_the_plan_is_shown_and_carried_out(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reassign(cluster, "t", "-r", "2", "--yes") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["topic", "partition", "from", "to"],
        ["t", "0", "1", "1", "2"],
        ["t", "1", "1", "1", "3"],
    ]
    assert lines[3] == "Changed 2 partitions; 2 replicas copied."
    assert cluster.replicas == {("t", 0): (1, 2), ("t", 1): (1, 3)}


def test_without_a_terminal_nothing_moves_unasked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    assert reassign(cluster, "t", "--assign", "2", "-p", "1") == 2
    said = capsys.readouterr().err
    assert "Change 1 partition (1 replica to copy)" in said
    assert "--yes" in said
    assert cluster.replicas == {("t", 0): (1,), ("t", 1): (1,)}


def test_a_no_and_a_dry_run_move_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ottla.cli.confirmation.ask", lambda *_, **__: False)
    assert reassign(cluster, "t", "--brokers", "2,3") == 1
    assert reassign(cluster, "t", "--brokers", "2,3", "--dry-run", "--json") == 0
    assert cluster.replicas == {("t", 0): (1,), ("t", 1): (1,)}
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :]) == {
        "requested": False,
        "done": False,
        "moved": [
            {"topic": "t", "partition": 0, "from": [1], "to": [2]},
            {"topic": "t", "partition": 1, "from": [1], "to": [3]},
        ],
    }


def test_nothing_to_move_is_said(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert reassign(cluster, "t", "--assign", "1,1") == 0
    assert "Nothing to move" in capsys.readouterr().err


def test_a_move_that_somebody_cancelled_is_a_failure(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.obeys = False
    assert reassign(cluster, "t", "--assign", "2,1", "--yes") == 1
    assert "1 partition did not move, such as t-0: its replicas are" in capsys.readouterr().err


def test_what_moves_is_listed_and_cancelled(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reassign(cluster, "--list") == 0
    assert capsys.readouterr().err == "No reassignment is under way.\n"
    move = Reassignment((1, 2), (2,), (1,))
    cluster.under_way = {("t", 0): move, ("u", 0): move}
    assert reassign(cluster, "t", "--list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "adding": [2], "removing": [1]}
    ]
    assert reassign(cluster, "--cancel", "--yes") == 0
    assert cluster.cancelled == [("t", 0), ("u", 0)]
    assert "Cancelled the moves of 2 partitions." in capsys.readouterr().out
    assert reassign(cluster, "t", "--cancel", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["cancelled"] is False
    assert len(cluster.cancelled) == 2


@pytest.mark.parametrize(
    ("given", "topics", "partition", "reason"),
    [
        ([], ["t"], [], "no target given"),
        (["--list", "--cancel"], [], [], "--list and --cancel exclude each other"),
        (["--assign", "--brokers"], ["t"], [], "--assign and --brokers exclude each other"),
        (["--file"], ["t"], [], "--file names its topics"),
        (["--brokers"], [], [], "--brokers needs a topic"),
        (["--assign"], ["t", "u"], [], "--assign needs one topic"),
        (["--brokers"], ["t", "u"], [0], "--partition needs one topic"),
        (["--list"], ["t"], [0], "--list and --partition exclude each other"),
    ],
)
def test_options_that_contradict_each_other(
    given: list[str], topics: list[str], partition: list[int], reason: str
) -> None:
    with pytest.raises(UsageFailed, match=reason):
        check_together(dict.fromkeys(given, True), topics, partition)


def test_a_number_of_replicas_goes_with_brokers() -> None:
    check_together({"--brokers": True, "--replication-factor": True}, ["t"], [0])


def test_brokers_are_read() -> None:
    assert read_brokers("3, 1,3") == [1, 3]
    assert read_brokers(None) is None
    with pytest.raises(UsageFailed, match="must be broker ids, not '1,x'"):
        read_brokers("1,x")


def test_an_assignment_is_for_all_partitions_or_the_named_ones() -> None:
    assert assigned("3,1,2", "t", None, {"t": [[1], [2], [1]]}) == {
        "t": {0: (3,), 1: (1,), 2: (2,)}
    }
    assert assigned("3:1", "t", [2], {"t": [[1], [2], [1]]}) == {"t": {2: (3, 1)}}
    with pytest.raises(UsageFailed, match="brokers of 1 partition, but 3 are to be moved"):
        assigned("3", "t", None, {"t": [[1], [2], [1]]})
