"""A topic's document and its table: leaders, epochs, and what is wrong."""

import pytest
from tests.client.answers import configs, offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli.rows import document as document_of
from ottla.cli.topic.description import mark, show_topic, troubles
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.admin.topic_states import (
    TopicPartitionState,
    TopicState,
    partition_state,
    topic_states,
)
from ottla.client.metadata import Partition
from ottla.client.topic_partition import TopicPartition


def described(
    index: int,
    leader: int,
    in_sync: tuple[int, ...] = (1, 2),
    *,
    offline: tuple[int, ...] = (),
    racks: dict[int, str | None] | None = None,
    why: str | None = None,
) -> TopicPartitionState:
    partition = Partition(leader, 5, (1, 2), in_sync, offline)
    return partition_state(index, partition, racks or {}, 3, 9 if why is None else None, why)


def test_a_healthy_partition() -> None:
    assert document_of(described(0, 1)) == {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 5,
        "replicas": [1, 2],
        "racks": [None, None],
        "in_sync": [1, 2],
        "offline_replicas": [],
        "state": "ok",
        "start_offset": 3,
        "end_offset": 9,
        "offsets_error": None,
    }


def test_a_partition_whose_leader_is_silent() -> None:
    told = described(0, 1, why="it says nothing")
    assert (told.state, told.leader) == ("ok", 1)
    assert (told.start_offset, told.end_offset) == (None, None)
    assert told.offsets_error == mark(told) == "it says nothing"
    short = described(0, 1, (1,), offline=(2,), why="it says nothing")
    assert mark(short) == "under-replicated, down: 2, it says nothing"


@pytest.mark.parametrize(
    ("leader", "in_sync", "offline", "state", "said"),
    [
        (1, (1, 2), (), "ok", ""),
        (1, (1,), (), "under_replicated", "under-replicated"),
        (1, (1,), (2,), "under_replicated", "under-replicated, down: 2"),
        (-1, (1,), (1,), "offline", "OFFLINE, down: 1"),
        (-1, (1, 2), (), "offline", "OFFLINE"),
    ],
)
def test_problems_are_marked(
    leader: int, in_sync: tuple[int, ...], offline: tuple[int, ...], state: str, said: str
) -> None:
    told = described(0, leader, in_sync, offline=offline)
    assert told.state == state
    assert mark(told) == said


def test_the_title_counts_problems(capsys: pytest.CaptureFixture[str]) -> None:
    partitions = [described(0, 1), described(1, 1, (1,)), described(2, -1, (1,))]
    assert troubles(partitions) == ", 1 offline, 1 under-replicated"
    assert troubles([described(0, 1), described(1, 1, why="?")]) == ", 1 without offsets"
    show_topic(TopicState("t", "id", False, partitions, {"retention.ms": "5"}))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "t: 3 partitions, 1 offline, 1 under-replicated"
    assert shown[1].split() == [
        *("partition", "leader", "epoch", "replicas", "in", "sync"),
        *("start", "offset", "end", "offset", "state"),
    ]
    assert shown[-1] == "retention.ms=5"


def test_without_problems_there_is_no_problem_column(capsys: pytest.CaptureFixture[str]) -> None:
    show_topic(TopicState("t", "id", False, [described(0, 1)], {}))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "t: 1 partition"
    assert "state" not in shown[1]


def test_racks_are_shown_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    told = described(0, 1, racks={1: "east"}, why="?")
    assert told.racks == ["east", None]
    show_topic(TopicState("t", "id", False, [told], {}))
    assert capsys.readouterr().out.splitlines()[2].split() == [
        *("0", "1", "5", "1", "2", "east", "-", "1", "2", "-", "-", "?"),
    ]


def test_a_topic_is_described_without_a_controller() -> None:
    partition = TopicPartition("t", 0)
    answers = {
        LIST_OFFSETS: [offsets({partition: 3}, {partition: 9})],
        DESCRIBE_CONFIGS: [configs({("topic", "t"): {"retention.ms": "5"}})],
    }
    cluster = FakeCluster(answers)
    cluster.controller = -1
    client = cluster.client()
    (told,) = topic_states(client, client.metadata(["t"]).topics)
    assert (told.config, told.id) == ({"retention.ms": "5"}, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert [each.end_offset for each in told.partitions] == [9, None, None]
    assert [each.state for each in told.partitions] == [
        *("under_replicated", "under_replicated", "offline")
    ]
