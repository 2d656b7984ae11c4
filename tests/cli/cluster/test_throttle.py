"""`ottla cluster throttle` sets, shows and removes Kafka's settings."""

from __future__ import annotations

import json

import pytest
from tests.client.answers import Settings, altered, configs, moving
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.configs import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from ottla.client.admin.reassignments import LIST_PARTITION_REASSIGNMENTS, Reassignment
from ottla.client.admin.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    RATES,
    REPLICAS,
)


class Cluster:
    """Brokers 1 and 2, topics t and u, and their settings."""

    def __init__(self) -> None:
        names = [("broker", "1"), ("broker", "2"), ("topic", "t"), ("topic", "u")]
        self.set: Settings = {each: {} for each in names}
        self.under_way: dict[tuple[str, int], Reassignment] = {}
        fake = FakeCluster(
            {
                LIST_PARTITION_REASSIGNMENTS: [moving(lambda: self.under_way)],
                DESCRIBE_CONFIGS: [configs(self.set)],
                INCREMENTAL_ALTER_CONFIGS: [altered(self.set)],
            }
        )
        fake.leaders = {("t", 0): 1, ("u", 4): 1}
        self.client = fake.client()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def throttle(cluster: Cluster, *words: str) -> int:
    return carry_out(["cluster", "throttle", *words], cluster)


def test_topics_are_limited_and_freed(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert throttle(cluster) == 0
    assert capsys.readouterr().out == "Replication is not limited.\n"
    assert throttle(cluster, "t", "--rate", "10MB") == 0
    assert cluster.set["broker", "1"] == dict.fromkeys(RATES, "10000000")
    assert cluster.set["topic", "t"] == dict.fromkeys(REPLICAS, "*")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["2", "10.0", "MB/s", "10.0", "MB/s"] in lines
    assert ["t", "*", "*"] in lines
    assert throttle(cluster, "--off") == 0
    assert capsys.readouterr().out == "Replication is not limited.\n"
    assert not any(cluster.set.values())


def test_without_topics_what_moves_is_limited(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.under_way = {("u", 4): Reassignment((3, 1, 2), (3,), (1,))}
    assert throttle(cluster, "--rate", "1000") == 0
    assert cluster.set["topic", "u"] == {LEADER_REPLICAS: "4:1,4:2", FOLLOWER_REPLICAS: "4:3"}
    assert cluster.set["topic", "t"] == {}
    cluster.under_way = {}
    assert throttle(cluster, "--rate", "1000") == 0
    assert "No reassignment is under way" in capsys.readouterr().err


def test_limits_are_a_document(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert throttle(cluster, "t", "--rate", "1000", "--json") == 0
    limited = {"leader_rate": 1000, "follower_rate": 1000}
    assert json.loads(capsys.readouterr().out) == {
        "brokers": [{"broker": 1, **limited}, {"broker": 2, **limited}],
        "topics": [{"topic": "t", "leader_replicas": "*", "follower_replicas": "*"}],
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rate", "1MB", "--off"], "--rate and --off exclude"),
        (["t"], "topics need --rate"),
        (["--rate", "fast"], "'fast' is not a size"),
    ],
)
def test_options_that_contradict_each_other(
    cluster: Cluster, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert throttle(cluster, *words) == 2
    assert reason in capsys.readouterr().err
