"""Who reads which partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, TopicPartition

from ottla.cli.group.members import group_members, ranges
from ottla.cli.rows import document


def member(client: str, *places: tuple[str, int], instance: str | None = None) -> Any:
    return SimpleNamespace(
        member_id=f"{client}-1",
        group_instance_id=instance,
        client_id=client,
        host="/10.0.0.1",
        assignment=SimpleNamespace(topic_partitions=[TopicPartition(*place) for place in places]),
    )


def test_members_with_their_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    description = SimpleNamespace(
        state=ConsumerGroupState.STABLE,
        partition_assignor="range",
        members=[
            member("idle"),
            member("busy", ("u", 0), ("t", 2), ("t", 0), ("t", 1), instance="i"),
        ],
    )
    found = group_members("g", description)
    assert document(found)["members"][0] == {
        "member_id": "busy-1",
        "instance_id": "i",
        "client_id": "busy",
        "host": "/10.0.0.1",
        "assignment": [
            {"topic": "t", "partitions": [0, 1, 2]},
            {"topic": "u", "partitions": [0]},
        ],
    }
    found.show()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["g:", "stable,", "2", "members,", "assignor", "range"],
        ["client", "host", "instance", "partitions", "member", "id"],
        ["busy", "10.0.0.1", "i", "t:0-2", "u:0", "busy-1"],
        ["idle", "10.0.0.1", "-", "idle-1"],
    ]


def test_numbers_as_ranges() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([]) == ""
