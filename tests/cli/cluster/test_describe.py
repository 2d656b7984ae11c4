"""What `ottla cluster describe` says of brokers and partitions."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.client.answers import configs, described, epoch
from tests.client.fake_cluster import FakeCluster, closing

from ottla.cli.app import carry_out
from ottla.cli.cluster.describe import show_cluster
from ottla.client.admin.cluster import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    ClusterState,
    PartitionState,
    cluster_state,
)
from ottla.client.admin.configs import DESCRIBE_CONFIGS

REPLICAS = {"good": (1, 2), "short": (2, 3), "gone": (3,), "lone": (1,)}
IN_SYNC = {"good": (1, 2), "short": (2,), "gone": (3,), "lone": (1,)}
LEADERS = {"good": 1, "short": 2, "gone": -1, "lone": 1}


def cluster(controller: int = 1) -> FakeCluster:
    fake = FakeCluster(
        {
            DESCRIBE_CLUSTER: [described(controller)],
            DESCRIBE_QUORUM: [epoch(4)],
            DESCRIBE_CONFIGS: [configs({("topic", "short"): {"min.insync.replicas": "2"}})],
        }
    )
    fake.leaders = {(name, 0): leader for name, leader in LEADERS.items()}
    fake.replicas = {(name, 0): each for name, each in REPLICAS.items()}
    fake.in_sync = {(name, 0): each for name, each in IN_SYNC.items()}
    return fake


def found() -> ClusterState:
    return cluster_state(cluster().client())


def test_brokers_that_are_down_but_have_replicas_are_listed() -> None:
    brokers = {each.id: each for each in found().brokers}
    assert sorted(brokers) == [1, 2, 3]
    assert [brokers[number].leaders for number in (1, 2, 3)] == [2, 1, 0]
    assert [brokers[number].replicas for number in (1, 2, 3)] == [2, 2, 2]
    assert not brokers[3].live


def test_each_kind_of_problem_is_found() -> None:
    assert [each.topic for each in found().offline] == ["gone"]
    assert [each.topic for each in found().under_min_isr] == ["short"]
    assert [each.topic for each in found().under_replicated] == ["short"]


def test_the_document_keeps_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    context = SimpleNamespace(client=cluster().client())
    assert carry_out(["cluster", "describe", "--json"], context) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        *("cluster_id", "controller", "controller_epoch", "controller_answers", "brokers"),
        *("topics", "partitions", "offline", "under_min_isr", "under_replicated", "led_by_others"),
    ]
    assert document["brokers"][0] == {
        "id": 1,
        "host": "b1",
        "port": 9092,
        "rack": "a",
        "live": True,
        "leaders": 2,
        "replicas": 2,
        "in_sync": 2,
    }
    assert document["offline"] == [
        {
            "topic": "gone",
            "partition": 0,
            "leader": None,
            "replicas": [3],
            "in_sync": [3],
            "min_in_sync": 1,
        }
    ]


def test_the_worst_problem_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    show_cluster(found())
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["cluster", "x:", "2", "brokers,", "controller", "1", "(epoch", "4)"]
    assert lines[2] == ["1", "b1:9092", "a", "2", "2", "2", "controller"]
    assert lines[4] == ["3", "-", "-", "0", "2", "1", "down"]
    assert lines[6] == ["2", "of", "4", "partitions", "with", "problems"]
    assert lines[8] == ["gone", "0", "offline", "-", "3", "3"]
    assert lines[9] == ["short", "0", "under", "min", "isr", "2", "2", "3", "2"]


@pytest.mark.parametrize(
    ("replicas", "in_sync", "least", "is_under"),
    [
        ([1], [1], 2, False),
        ([1], [], 2, True),
        ([1, 2, 3], [1], 2, True),
        ([1, 2, 3], [1, 2], 2, False),
    ],
)
def test_no_more_in_sync_replicas_are_needed_than_there_are_replicas(
    replicas: list[int], in_sync: list[int], least: int, is_under: bool
) -> None:
    assert PartitionState("t", 0, 1, replicas, in_sync, least).is_under_min_isr is is_under


def test_internal_topics_have_one_row_each_after_the_users_topics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def partition(topic: str, number: int, leader: int | None) -> PartitionState:
        return PartitionState(topic, number, leader, [1, 2, 3], [2, 3], 1)

    offsets = [partition("__consumer_offsets", number, 2) for number in range(50)]
    troubled = [*offsets, partition("flights", 7, 3)]
    show_cluster(
        replace(found(), partitions=51, offline=[], under_min_isr=[], under_replicated=troubled)
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[6] == ["51", "of", "51", "partitions", "with", "problems"]
    assert lines[8] == ["flights", "7", "under-replicated", "3", "1", "2", "3", "2", "3"]
    assert lines[9] == ["__consumer_offsets", "50", "partitions", "under-replicated"]
    assert len(lines) == 10


@pytest.mark.parametrize(
    ("named", "answers", "controller", "controller_answers"),
    [(2, True, 2, True), (2, False, 2, False), (-1, True, None, False), (9, True, None, False)],
)
def test_any_broker_describes_the_cluster_and_the_controller_is_checked(
    named: int, answers: bool, controller: int | None, controller_answers: bool
) -> None:
    brokers = cluster(named)
    if not answers:
        brokers.silent.add("b2:9092")
    told = cluster_state(brokers.client())
    assert (told.controller, told.controller_answers) == (controller, controller_answers)
    assert (told.controller_epoch, told.live_brokers) == (4, 2)


def test_a_controllers_epoch_that_no_broker_knows() -> None:
    brokers = cluster()
    brokers.answers[DESCRIBE_QUORUM] = [closing]
    assert cluster_state(brokers.client()).controller_epoch is None


def test_without_a_controller_the_last_known_state_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    brokers = cluster(2)
    brokers.silent.add("b2:9092")
    show_cluster(cluster_state(brokers.client()))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "cluster x: 2 brokers, controller 2 (epoch 4) NOT RESPONDING"
    assert "This is the last known state: there is no controller to ask." in shown
