"""Where partitions begin that the group has given, without clusters."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import assignment, events
from ottla.mirroring.assignment import Assignment
from ottla.mirroring.events import Event
from ottla.mirroring.position import Origin, Position
from ottla.mirroring.share import Share
from ottla.mirroring.target_producer import MAX_POSITIONS
from ottla.mirroring.topic_plan import SourceTopic, TopicPlan

COUNT = 2 * MAX_POSITIONS + 1
ALL = frozenset(TopicPartition("x.t", index) for index in range(COUNT))


class Given:
    """A member of the group with these partitions, and a writer that notes what it commits."""

    def __init__(self) -> None:
        self.shares = ALL
        self.known: dict[TopicPartition, Position] | None = {}
        self.committed: list[tuple[int, bool]] = []
        """Positions of each transaction, and whether each of them is a start."""

    def positions(self, _wanted: Iterable[TopicPartition], _within_s: float) -> Any:
        return None if self.known is None else dict(self.known)

    def commit(self, positions: Any, _names: Any, starts: Any, _check: Any) -> None:
        self.committed.append((len(positions), positions.keys() == starts.keys()))


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def given() -> Any:
    return Given()


@pytest.fixture
def share() -> Share:
    return Share()


@pytest.fixture
def plan() -> TopicPlan:
    made = TopicPlan()
    made.mirrored["x.t"] = SourceTopic("t", "source", COUNT, {}, ("further",))
    return made


@pytest.fixture
def begun(
    given: Any, share: Share, plan: TopicPlan, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> Assignment:
    for name, offset in (("first_offsets", 7), ("end_offsets", 9)):
        monkeypatch.setattr(
            assignment, name, lambda _client, some, offset=offset: dict.fromkeys(some, offset)
        )
    topic = SimpleNamespace(id="target", partitions=dict.fromkeys(range(COUNT)))
    metadata = SimpleNamespace(topics={"x.t": topic})
    client: Any = SimpleNamespace(asked=nullcontext, metadata=lambda _topics: metadata)
    lost: Any = SimpleNamespace(found=lambda *_: {})
    made = Assignment(client, client, given, given, lost, share, told.append, "near")
    made.begin(plan, ())
    return made


def test_positions_of_many_partitions_are_several_transactions(
    begun: Assignment, given: Any, share: Share, plan: TopicPlan
) -> None:
    assert begun.find(plan, ())
    assert given.committed == [(MAX_POSITIONS, True), (MAX_POSITIONS, True), (1, True)]
    origin = Origin("source", "target", ("near", "further"))
    assert share.committed == dict.fromkeys(ALL, Position(7, origin))
    assert not begun.is_waiting


def test_positions_that_are_not_stable_are_waited_for(
    begun: Assignment,
    given: Any,
    share: Share,
    plan: TopicPlan,
    told: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given.known = None
    assert not begun.find(plan, ())
    assert not told
    monkeypatch.setattr(assignment, "WAITING_NOTE_S", -1.0)
    assert not begun.find(plan, ())
    assert [each.kind for each in told] == [events.WAITING]
    assert not share.committed
    assert begun.is_waiting


def test_what_is_left_out_is_only_marked(
    begun: Assignment, given: Any, share: Share, plan: TopicPlan
) -> None:
    one = TopicPartition("x.t", 0)
    given.known = {one: Position(5, Origin("source", "target", ("near",)))}
    given.shares = frozenset({one})
    out = {("x.t", "source")}
    begun.begin(plan, out)
    assert begun.find(plan, out)
    assert given.committed == [(1, False)]
    assert not share.committed
