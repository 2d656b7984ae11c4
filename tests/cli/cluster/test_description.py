"""What `ottla cluster describe` makes of metadata."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import described, epoch
from tests.client.fake_cluster import FakeCluster, closing

from ottla.cli.cluster.description import (
    Description,
    KnownCluster,
    PartitionState,
    described_cluster,
    description,
    description_of,
    partition_states,
)
from ottla.cli.configs import Setting
from ottla.cli.rows import emit
from ottla.client.admin.cluster import DESCRIBE_CLUSTER, DESCRIBE_QUORUM
from ottla.client.metadata import Broker


def topics(**partitions: tuple[int, list[int], list[int]]) -> Any:
    return {
        name: SimpleNamespace(
            partitions={0: SimpleNamespace(leader=leader, replicas=replicas, isrs=isrs)}
        )
        for name, (leader, replicas, isrs) in partitions.items()
    }


TOPICS = topics(
    good=(1, [1, 2], [1, 2]), short=(2, [2, 3], [2]), gone=(-1, [3], [3]), lone=(1, [1], [1])
)
NODES = [Broker(1, "b1", 9092, "a"), Broker(2, "b2", 9092, "b")]


def found() -> Description:
    partitions = list(partition_states(TOPICS, {**dict.fromkeys(TOPICS, 1), "short": 2}))
    return description(KnownCluster("x", 1, 4, True, NODES), 4, partitions)


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
    emit(found(), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        *("cluster_id", "controller", "controller_epoch", "controller_answers", "brokers"),
        *("topics", "partitions", "offline", "under_min_isr", "under_replicated"),
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
    found().show()
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
    replace(
        found(),
        partitions=51,
        offline=[],
        under_min_isr=[],
        under_replicated=[*offsets, partition("flights", 7, 3)],
    ).show()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[6] == ["51", "of", "51", "partitions", "with", "problems"]
    assert lines[8] == ["flights", "7", "under-replicated", "3", "1", "2", "3", "2", "3"]
    assert lines[9] == ["__consumer_offsets", "50", "partitions", "under-replicated"]
    assert len(lines) == 10


def connection(cluster: FakeCluster, **told: Any) -> Any:
    """Beside the client, librdkafka's side: the topics, and its answer to DescribeCluster."""
    return SimpleNamespace(
        client=cluster.client(),
        answer_timeout_s=1.0,
        admin=SimpleNamespace(describe_cluster=lambda request_timeout: None),
        wait=lambda future, doing: SimpleNamespace(**told),
        topics=lambda: TOPICS,
    )


def cluster(controller: int) -> FakeCluster:
    return FakeCluster({DESCRIBE_CLUSTER: [described(controller)], DESCRIBE_QUORUM: [epoch(7)]})


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
    told = described_cluster(connection(brokers))
    assert told == KnownCluster("x", controller, 7, controller_answers, NODES)


def test_a_controllers_epoch_that_no_broker_knows() -> None:
    brokers = cluster(1)
    brokers.answers[DESCRIBE_QUORUM] = [closing]
    assert described_cluster(connection(brokers)).controller_epoch is None


@pytest.mark.parametrize(("controller", "known"), [(NODES[1], 2), (None, None)])
def test_librdkafka_is_used_if_the_client_cannot_connect(
    controller: Broker | None, known: int | None
) -> None:
    brokers = FakeCluster({DESCRIBE_CLUSTER: [closing]})
    told = connection(brokers, cluster_id="x", controller=controller, nodes=NODES)
    assert described_cluster(told) == KnownCluster("x", known, None, None, NODES)


def settings(
    connection: Any, kind: str, names: list[str], *, alone: bool
) -> dict[str, list[Setting]]:
    assert alone
    return {name: [Setting("min.insync.replicas", "2", "topic")] for name in names}


def test_without_a_controller_any_broker_describes_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ottla.cli.cluster.description.describe_configs", settings)
    brokers = cluster(2)
    brokers.silent.add("b2:9092")
    cluster_now = description_of(connection(brokers))
    assert (cluster_now.controller, cluster_now.controller_answers) == (2, False)
    assert [each.min_in_sync for each in cluster_now.under_replicated] == [2]
    cluster_now.show()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "cluster x: 2 brokers, controller 2 (epoch 7) NOT RESPONDING"
    assert "This is the last known state: there is no controller to ask." in shown
