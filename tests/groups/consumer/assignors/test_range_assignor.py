"""`range` gives what Apache Kafka's does; cases and results follow its tests."""

from __future__ import annotations

from tests.groups.consumer.assignors.specs import group, member, numbers_of

from ottla.groups.consumer.assignors import range_assignor
from ottla.groups.consumer.assignors.spec import GroupSpec


def ranged(spec: GroupSpec) -> dict[str, dict[int, set[int]]]:
    return numbers_of(range_assignor.assign(spec))


def test_range_gives_contiguous_partitions_and_the_first_members_the_rest() -> None:
    spec = group({1: 3, 3: 2}, A=member([1, 3]), B=member([1, 3]))
    assert ranged(spec) == {"A": {1: {0, 1}, 3: {0}}, "B": {1: {2}, 3: {1}}}


def test_range_with_different_subscriptions() -> None:
    spec = group({1: 3, 2: 3, 3: 2}, A=member([1, 2]), B=member([3]), C=member([2, 3]))
    assert ranged(spec) == {
        "A": {1: {0, 1, 2}, 2: {0, 1}},
        "B": {3: {0}},
        "C": {2: {2}, 3: {1}},
    }


def test_range_with_more_members_than_partitions() -> None:
    spec = group({1: 3, 3: 2}, A=member([1, 3]), B=member([1, 3]), C=member([1, 3]))
    assert ranged(spec) == {"A": {1: {0}, 3: {0}}, "B": {1: {1}, 3: {1}}, "C": {1: {2}}}


def test_range_keeps_a_static_members_partitions_under_another_id() -> None:
    before = group({1: 5}, A=member([1], instance="a"), B=member([1]), C=member([1], instance="c"))
    after = group({1: 5}, B=member([1]), C=member([1], instance="c"), Z=member([1], instance="a"))
    assert ranged(before) == {"A": {1: {0, 1}}, "C": {1: {2, 3}}, "B": {1: {4}}}
    assert ranged(after) == {"Z": {1: {0, 1}}, "C": {1: {2, 3}}, "B": {1: {4}}}


def test_range_ignores_what_members_hold() -> None:
    spec = group({1: 4}, A=member([1], {1: {2, 3}}), B=member([1], {1: {0, 1}}))
    assert ranged(spec) == {"A": {1: {0, 1}}, "B": {1: {2, 3}}}
