"""Which offsets of groups are set at the target."""

from __future__ import annotations

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.group_plan import may_set, offsets_to_set


def test_a_group_that_is_new_there() -> None:
    assert may_set(0, None, None)
    assert may_set(0, None, 7), "its offsets were deleted there"


def test_after_a_start_only_forward() -> None:
    assert may_set(8, 7, None)
    assert not may_set(7, 7, None)
    assert not may_set(6, 7, None)


def test_what_the_mirror_has_set_itself_may_go_back_with_a_reset_at_the_source() -> None:
    assert may_set(3, 7, 7)
    assert may_set(9, 7, 7)
    assert not may_set(7, 7, 7)


def test_a_group_that_has_read_there_is_left_alone() -> None:
    assert not may_set(9, 8, 7)
    assert not may_set(6, 8, 7)


def test_by_partition() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    assert offsets_to_set({one: 5, two: 5}, {one: 5, two: 4}, {}) == {two: 5}
