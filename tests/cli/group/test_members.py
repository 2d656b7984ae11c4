"""Who reads which partitions."""

from __future__ import annotations

import pytest

from ottla.cli.group.members import group_members
from ottla.cli.rows import document
from ottla.client.admin.groups import Group, Member
from ottla.client.topic_partition import TopicPartition


def member(client: str, *partitions: tuple[str, int], instance: str | None = None) -> Member:
    assignment = tuple(TopicPartition(*partition) for partition in partitions)
    return Member(f"{client}-1", instance, client, "/10.0.0.1", assignment)


def test_members_with_their_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    members = (
        member("idle"),
        member("busy", ("u", 0), ("t", 2), ("t", 0), ("t", 1), instance="i"),
    )
    found = group_members(Group("g", "stable", "classic", "range", 2, False, members))
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
