"""Which offsets are deleted with their group, their topic or their time."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.state import DEAD, STABLE
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.removal import (
    delete_all_offsets,
    delete_offsets,
    expire_offsets,
    topic_deleted,
)
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.errors import ApiError, ErrorCode

COMMITTED_MS = 1_000
RETENTION_MS = 500
TOPIC, RECREATED = UUID(int=1), UUID(int=2)


def key(topic: str, partition: int = 0) -> OffsetCommitKey:
    return OffsetCommitKey("g", topic, partition)


def value(expire_ms: int = -1, topic_id: UUID | None = None) -> OffsetCommitValue:
    return OffsetCommitValue(5, -1, "", COMMITTED_MS, expire_ms, topic_id)


def stored(*keys: OffsetCommitKey) -> OffsetStore:
    store = OffsetStore()
    for each in keys:
        store.apply(each, value())
    return store


def pending_at(*keys: OffsetCommitKey) -> PendingOffsets:
    pending = PendingOffsets()
    for each in keys:
        pending.add(7, each, value(), 1)
    return pending


def step_at(now_ms: int) -> Step:
    return Step(now_ms, GroupSettings(offsets_retention_ms=RETENTION_MS))


def consumers(*subscribed: str) -> ClassicGroup:
    """A stable group of consumers of these topics."""
    group = ClassicGroup("g", 0)
    group.state, group.protocol_type = STABLE, "consumer"
    group.subscribed = frozenset(subscribed)
    return group


def removed(step: Step) -> list[OffsetCommitKey]:
    assert all(record.value is None for record in step.records)
    assert not step.records or not step.is_atomic, "there may be more than one batch can hold"
    return [record.key for record in step.records]  # type: ignore[misc]


def test_only_unsubscribed_topics_lose_their_offsets_by_request() -> None:
    step = step_at(0)
    offsets, pending = stored(key("read"), key("old")), pending_at(key("old", 1))
    topics = (("read", (0,)), ("old", (0, 1, 2)))
    errors = delete_offsets(consumers("read"), topics, offsets, pending, step)
    none, subscribed = ErrorCode.none, ErrorCode.group_subscribed_to_topic
    assert errors == [[subscribed], [none, none, none]]
    assert removed(step) == [key("old", 0), key("old", 1)]


def test_a_group_whose_members_are_no_consumers_keeps_its_offsets() -> None:
    group = consumers("t")
    group.protocol_type = "connect"
    with pytest.raises(ApiError) as refused:
        delete_offsets(group, (), OffsetStore(), PendingOffsets(), step_at(0))
    assert refused.value.code is ErrorCode.non_empty_group
    group.state = DEAD
    for absent in (None, group):
        with pytest.raises(ApiError) as refused:
            delete_offsets(absent, (), OffsetStore(), PendingOffsets(), step_at(0))
        assert refused.value.code is ErrorCode.group_id_not_found


def test_a_deleted_group_loses_committed_and_pending_offsets_once() -> None:
    step = step_at(0)
    delete_all_offsets("g", stored(key("t")), pending_at(key("t"), key("u")), step)
    assert removed(step) == [key("t"), key("u")]


def test_a_deleted_topic_takes_its_offsets_but_not_those_of_its_successor() -> None:
    offsets = OffsetStore()
    offsets.apply(key("t", 0), value(topic_id=TOPIC))
    offsets.apply(key("t", 1), value(topic_id=None))
    offsets.apply(key("t", 2), value(topic_id=RECREATED))
    offsets.apply(key("u", 0), value(topic_id=TOPIC))
    step = step_at(0)
    topic_deleted("t", TOPIC, offsets, pending_at(key("t", 1), key("t", 3)), step)
    assert removed(step) == [key("t", 0), key("t", 1), key("t", 3)]
    step = step_at(0)
    topic_deleted("t", None, offsets, PendingOffsets(), step)
    assert removed(step) == [key("t", 0), key("t", 1), key("t", 2)]


def test_offsets_expire_in_topics_that_no_member_reads() -> None:
    offsets = stored(key("read"), key("old"))
    before, after = step_at(COMMITTED_MS + RETENTION_MS - 1), step_at(COMMITTED_MS + RETENTION_MS)
    assert not expire_offsets(consumers("read"), offsets, PendingOffsets(), before)
    assert not expire_offsets(consumers("read"), offsets, PendingOffsets(), after)
    assert (removed(before), removed(after)) == ([], [key("old")])


def test_an_empty_groups_offsets_expire_after_its_last_member_left() -> None:
    group = ClassicGroup("g", 9_000)
    group.protocol_type, group.subscribed = "consumer", frozenset()
    offsets = stored(key("t"))
    before, after = step_at(9_000 + RETENTION_MS - 1), step_at(9_000 + RETENTION_MS)
    assert not expire_offsets(group, offsets, PendingOffsets(), before)
    assert expire_offsets(group, offsets, PendingOffsets(), after)
    assert (removed(before), removed(after)) == ([], [key("t")])


def test_an_offset_may_have_a_retention_of_its_own() -> None:
    offsets = OffsetStore()
    offsets.apply(key("t"), value(expire_ms=1_001))
    step = step_at(1_001)
    assert expire_offsets(ClassicGroup("g", 0), offsets, PendingOffsets(), step)
    assert removed(step) == [key("t")]


def test_what_a_transaction_may_change_does_not_expire() -> None:
    step = step_at(COMMITTED_MS + RETENTION_MS)
    assert not expire_offsets(ClassicGroup("g", 0), stored(key("t")), pending_at(key("t")), step)
    assert removed(step) == []
    assert not expire_offsets(ClassicGroup("g", 0), OffsetStore(), pending_at(key("t")), step)
    assert expire_offsets(ClassicGroup("g", 0), OffsetStore(), PendingOffsets(), step)


def test_an_unreadable_subscription_keeps_every_offset() -> None:
    group = consumers()
    group.subscribed = None
    step = step_at(1 << 40)
    assert not expire_offsets(group, stored(key("t")), PendingOffsets(), step)
    assert removed(step) == []
