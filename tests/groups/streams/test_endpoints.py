"""Which member answers interactive queries, and how much of that is told."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.groups.streams.world import subtopology

from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.streams import endpoints
from ottla.groups.streams.configured import configure
from ottla.groups.streams.endpoints import endpoint_partitions
from ottla.groups.streams.member import Endpoint, Member
from ottla.groups.streams.tasks import HeldTasks
from ottla.groups.streams.topology import Topology

HERE = Endpoint("h", 1)


def topics(**counts: int) -> Topics:
    return Topics(1, {name: Topic(UUID(int=7), count) for name, count in counts.items()})


def member(number: int, endpoint: Endpoint | None = HERE) -> Member:
    return Member(f"m{number}", endpoint=endpoint, assigned=HeldTasks({"0": {number: 1}}))


def test_what_a_task_reads() -> None:
    there = topics(t=2, u=1)
    configured = configure(Topology(0, (subtopology("0", "u,t"),)), there)
    held = HeldTasks({"0": {1: 1, 0: 1}, "gone": {0: 1}}, {"0": frozenset({1})})
    first = Member("m", endpoint=HERE, assigned=held)
    assert endpoint_partitions([first, member(1, None)], configured, there) == (
        (HERE, (("t", (0, 1)), ("u", (0,))), (("t", (1,)),)),
    )


def test_too_much_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    there = topics(t=9, u=9)
    configured = configure(Topology(0, (subtopology("0", "t,u"),)), there)
    monkeypatch.setattr(endpoints, "MAX_TOPICS", 4)
    two = [member(0), member(1), member(2, None)]
    assert len(endpoint_partitions(two, configured, there) or ()) == 2
    assert endpoint_partitions([*two, member(3)], configured, there) is None
