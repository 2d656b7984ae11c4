"""Which groups decide in a thread."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.groups.streams.world import PLAIN, subtopology

from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.large import MAX_AT_ONCE, is_large
from ottla.groups.streams.member import Endpoint, Member
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.groups.streams.tasks import HeldTasks
from ottla.groups.streams.topology import Topology


def topics(**counts: int) -> Topics:
    return Topics(1, {name: Topic(UUID(int=7), count) for name, count in counts.items()})


def member(number: int) -> Member:
    held = HeldTasks({"0": {number: 1}})
    return Member(f"m{number}", endpoint=Endpoint("h", 1), assigned=held)


@pytest.mark.parametrize(
    ("members", "tasks", "owned"), [(1_000, 1_000, 0), (10, MAX_AT_ONCE, 0), (10, 10, MAX_AT_ONCE)]
)
def test_many_members_many_tasks_or_many_said_to_be_there(
    members: int, tasks: int, owned: int
) -> None:
    group = StreamsGroup("g")
    group.topology = PLAIN
    group.members = {f"m{number}": member(number) for number in range(members)}
    request = HeartbeatRequest("g", "m0", 1, "c", "h", active={"0": frozenset(range(owned))})
    assert is_large(group, request, topics(t=tasks))


def test_many_members_that_read_many_topics_decide_in_a_thread() -> None:
    names = [f"t{number}" for number in range(100)]
    group = StreamsGroup("g")
    group.topology = Topology(0, (subtopology("0", ",".join(names)),))
    group.members = {f"m{number}": member(number) for number in range(MAX_AT_ONCE // 100)}
    request = HeartbeatRequest("g", "m0", 1, "c", "h")
    there = topics(**dict.fromkeys(names, 1))
    assert is_large(group, request, there)
    group.members = {name: each._replace(endpoint=None) for name, each in group.members.items()}
    assert not is_large(group, request, there)
