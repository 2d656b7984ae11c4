"""What `ottla cluster describe` makes of metadata."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.cluster_documents import (
    broker_documents,
    is_under_min_isr,
    is_under_replicated,
    partition_documents,
    show_cluster,
)


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
NODES = [
    SimpleNamespace(id=1, host="here", port=1, rack="a"),
    SimpleNamespace(id=2, host="here", port=2, rack="b"),
]


def document() -> dict[str, Any]:
    partitions = list(partition_documents(TOPICS, {"short": 2}))
    return {
        "cluster_id": "x",
        "controller": 1,
        "controller_epoch": 4,
        "brokers": broker_documents(NODES, partitions),
        "topics": 4,
        "partitions": len(partitions),
        "offline": [each for each in partitions if each["leader"] is None],
        "under_min_isr": [each for each in partitions if is_under_min_isr(each)],
        "under_replicated": [each for each in partitions if is_under_replicated(each)],
    }


def test_brokers_that_are_down_but_hold_replicas_are_told() -> None:
    brokers = {each["id"]: each for each in document()["brokers"]}
    assert sorted(brokers) == [1, 2, 3]
    assert [brokers[number]["leaders"] for number in (1, 2, 3)] == [2, 1, 0]
    assert [brokers[number]["replicas"] for number in (1, 2, 3)] == [2, 2, 2]
    assert not brokers[3]["live"]


def test_each_kind_of_trouble_is_found() -> None:
    found = document()
    assert [each["topic"] for each in found["offline"]] == ["gone"]
    assert [each["topic"] for each in found["under_min_isr"]] == ["short"]
    assert [each["topic"] for each in found["under_replicated"]] == ["short"]


def test_a_person_sees_the_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    show_cluster(document())
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["cluster", "x:", "2", "brokers,", "controller", "1", "(epoch", "4)"]
    assert lines[2] == ["1", "here:1", "a", "2", "2", "2", "controller"]
    assert lines[4] == ["3", "-", "-", "0", "2", "1", "down"]
    assert lines[6] == ["2", "of", "4", "partitions", "not", "well"]
    assert lines[8] == ["gone", "0", "offline", "-", "3", "3"]
    assert lines[9] == ["short", "0", "under", "min", "isr", "2", "2", "3", "2"]
