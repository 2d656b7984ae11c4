"""`ottla cluster elect` elects what needs it, and prints the leaders before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.client.answers import elected
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.cli.cluster.elect import loss
from ottla.client.admin.elections import ELECT_LEADERS
from ottla.client.topic_partition import TopicPartition


class Cluster:
    """t-0 has its preferred leader, t-1 another one, t-2 none; elections have the given result."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.error: str | None = None
        fake = FakeCluster({ELECT_LEADERS: [elected(self.elect)]})
        self.leaders = fake.leaders
        fake.leaders |= {("t", 0): 1, ("t", 1): 2, ("t", 2): -1}
        fake.in_sync = dict.fromkeys(fake.leaders, (2,))
        self.client = fake.client()

    def elect(self, unclean: bool, places: Sequence[tuple[str, int]]) -> str | None:
        self.asked.append((unclean, [index for _, index in places]))
        if self.error is None:
            self.leaders |= dict.fromkeys(places, 1)
        return self.error


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def elect(cluster: Cluster, *words: str) -> int:
    return carry_out(["cluster", "elect", *words], cluster)


Run = Callable[..., Any]


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_elect(*words: str) -> Any:
        assert elect(cluster, *words, "--json") == 0
        return json.loads(capsys.readouterr().out)

    return run_elect


def test_partitions_without_their_preferred_leader_get_it(cluster: Cluster, run: Run) -> None:
    one, two = run()
    assert cluster.asked == [(False, [1, 2])]
    assert one == {
        "topic": "t",
        "partition": 1,
        "preferred": 1,
        "before": 2,
        "after": 1,
        "error": None,
    }
    assert (two["before"], two["after"]) == (None, 1)
    assert run() == []


def test_unclean_is_for_partitions_without_a_leader(
    cluster: Cluster, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert elect(cluster, "--unclean", "--yes") == 2
    assert "--unclean needs topics" in capsys.readouterr().err
    assert [each["partition"] for each in run("t", "--unclean", "--yes")] == [2]
    assert cluster.asked == [(True, [2])]


@pytest.mark.parametrize(
    ("in_sync", "said"),
    [
        ([3], "The records that only broker 3 has are lost."),
        ([3, 2], "The records that only brokers 2 and 3 have are lost."),
        ([], "The records that it does not have are lost."),
    ],
)
def test_unclean_says_what_it_costs(in_sync: list[int], said: str) -> None:
    shown = loss(TopicPartition("t", 2), 1, in_sync)
    assert shown == f"t-2: broker 1, the leader now, was not in sync. {said}"


def test_the_cost_is_printed_after_the_election(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert elect(cluster, "t", "--unclean", "--yes") == 0
    assert "t-2: broker 1, the leader now, was not in sync." in capsys.readouterr().err
    assert elect(cluster, "t", "-p", "1") == 0
    assert capsys.readouterr().err == ""


def test_unclean_asks_first(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cli.confirmation.ask", lambda *_, **__: False)
    assert elect(cluster, "t", "--unclean") == 1
    assert cluster.asked == []


def test_a_dry_run_elects_nothing(cluster: Cluster, run: Run) -> None:
    assert [each["after"] for each in run("t", "-p", "1", "--dry-run")] == [2]
    assert cluster.asked == []


def test_a_failed_election_is_shown_and_fails(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.error = "preferred leader not available"
    assert elect(cluster, "t", "-p", "1") == 1
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:5] == ["t", "1", "1", "2", "2"]
    assert "preferred leader" in row.lower()
