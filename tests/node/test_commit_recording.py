"""Where a commit is recorded: beside the partition's replica, or beside the group's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.groups.offsets.commit import Cause, OffsetsCommitted
from ottla.groups.stored import (
    CoordinatorRecord,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.node.commit_recording import CommitRecording
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.timelines.step import Before, By

TOPIC_ID = UUID(int=7)
NOTED_MS = 3005
"""When the commit was replicated."""
CLOCK: Any = SimpleNamespace(now_ms=lambda: NOTED_MS)


class Recorded:
    """A timeline that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def committed(self, *event: Any) -> None:
        self.events.append(event)

    def forgotten(self, *event: Any) -> None:
        self.events.append(event)


class Broker:
    """It has replicas of t-0 and of `__consumer_offsets`."""

    def __init__(self) -> None:
        self.enabled = True
        self.beside_replica, self.beside_group = Recorded(), Recorded()
        self.replicas: dict[tuple[str, int], Any] = {
            ("t", 0): SimpleNamespace(timeline_at=lambda now_ms: self.beside_replica),
            (OFFSETS_TOPIC, 0): SimpleNamespace(log="offsets"),
        }
        offsets = SimpleNamespace(partitions=[None])
        topic = SimpleNamespace(topic_id=TOPIC_ID)
        self.image = SimpleNamespace(topic={OFFSETS_TOPIC: offsets, "t": topic}.get)

    def get(self, topic: str, partition: int) -> Any:
        return self.replicas.get((topic, partition))

    def of_groups(self, log: str, topic_id: UUID, partition: int) -> Recorded:
        assert (log, topic_id, partition) == ("offsets", TOPIC_ID, 1)
        return self.beside_group

    def record(
        self, partition: int, value: Any, before: Any, cause: Cause, topic: str = "t"
    ) -> None:
        me: Any = self
        records = (
            CoordinatorRecord(OffsetCommitKey("g", topic, partition), value),
            CoordinatorRecord(GroupMetadataKey("g"), None),
        )
        recording = CommitRecording(me, lambda: me.image, me, CLOCK)
        recording.committed(OffsetsCommitted(records, 3000, (before, None), cause))


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset, 0, "m", 1000)


@pytest.mark.parametrize(
    ("cause", "by"),
    [(Cause.MEMBER, By.MEMBER), (Cause.SIMPLE, By.SIMPLE), (Cause.OUTSIDE, By.OUTSIDE)],
)
def test_a_commit_stands_beside_the_replica(cause: Cause, by: By) -> None:
    broker = Broker()
    broker.record(0, value(9), value(4), cause)
    broker.record(0, value(9), None, cause)
    assert broker.beside_replica.events == [
        ("g", 9, "m", 3000, Before(4, "m"), by, NOTED_MS),
        ("g", 9, "m", 3000, Before(-1, ""), by, NOTED_MS),
    ]


def test_without_a_replica_it_stands_beside_the_group() -> None:
    broker = Broker()
    broker.record(1, value(9), value(4), Cause.MEMBER)
    assert broker.beside_group.events == [("g", 9, "m", 3000, Before(4, "m"), By.MEMBER, NOTED_MS)]


def test_a_removal_is_recorded_with_its_reason() -> None:
    broker = Broker()
    broker.record(0, None, value(4), Cause.EXPIRED)
    broker.record(0, None, None, Cause.EXPIRED)
    reason = "offsets.retention.minutes"
    assert broker.beside_replica.events == [("g", 3000, reason, Before(4, "m"), NOTED_MS)]


def test_what_has_no_place_is_not_recorded() -> None:
    broker = Broker()
    broker.record(0, value(9), None, Cause.MEMBER, topic="deleted")
    del broker.replicas[OFFSETS_TOPIC, 0]
    broker.record(1, value(9), None, Cause.MEMBER)
    broker.enabled = False
    broker.record(0, value(9), None, Cause.MEMBER)
    assert broker.beside_replica.events == broker.beside_group.events == []


async def test_deleted_topics_take_along_what_is_recorded_beside_groups() -> None:
    broker: Any = Broker()
    broker.image.topics_by_id = {TOPIC_ID: None}
    broker.of_topic = lambda topic: [broker.replicas[topic, 0]]
    removed: list[Any] = []

    async def remove_groups(logs: Any, is_gone: Any) -> None:
        removed.append((logs, is_gone(TOPIC_ID), is_gone(UUID(int=9))))

    broker.remove_groups = remove_groups
    recording = CommitRecording(broker, lambda: broker.image, broker, CLOCK)
    await recording.topic_deleted(TOPIC_ID)
    await recording.topic_deleted(None)
    await recording.remove_deleted({UUID(int=9)})
    assert removed == [(["offsets"], True, False), (["offsets"], False, True)]


async def test_what_an_older_tree_lacks_stays_until_its_deletion_is_noted() -> None:
    broker: Any = Broker()
    broker.image.topics_by_id = {TOPIC_ID: None}
    broker.of_topic = lambda topic: [broker.replicas[topic, 0]]
    lacking, noted = UUID(int=8), UUID(int=9)
    gone: list[UUID] = []

    async def topics_of_groups(logs: Any) -> set[UUID]:
        return {TOPIC_ID, lacking, noted}

    async def remove_groups(logs: Any, is_gone: Any) -> None:
        gone.extend(each for each in (TOPIC_ID, lacking, noted) if is_gone(each))

    broker.topics_of_groups, broker.remove_groups = topics_of_groups, remove_groups
    recording = CommitRecording(broker, lambda: broker.image, broker, CLOCK)
    assert await recording.unknown_topics() == {lacking, noted}
    await recording.remove_deleted({noted, TOPIC_ID})
    assert gone == [noted]
