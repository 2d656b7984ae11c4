"""`simple`: cases follow those of Kafka's SimpleAssignorTest, and what must hold of any group."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st
from tests.groups.consumer.assignors.specs import TOPICS, group, member, numbers_of

from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec
from ottla.groups.share.simple import assign


def assigned(counts: dict[int, int], spec: GroupSpec) -> dict[str, dict[int, set[int]]]:
    return numbers_of(assign(spec, {TOPICS[topic]: range(counts[topic]) for topic in counts}))


def test_no_members_and_no_topics() -> None:
    assert assigned({1: 3}, group({1: 3})) == {}
    assert assigned({}, group({}, a=member([1]))) == {"a": {}}
    assert assigned({1: 3}, group({1: 3}, a=member([]))) == {"a": {}}


def test_fewer_members_than_partitions() -> None:
    spec = group({}, a=member([1, 3]), b=member([1, 3]))
    assert assigned({1: 3, 3: 2}, spec) == {"a": {1: {0, 2}, 3: {1}}, "b": {1: {1}, 3: {0}}}


def test_more_members_than_partitions() -> None:
    spec = group({}, a=member([1, 2]), b=member([1, 2]), c=member([1, 2]))
    # Two for each partition are four: the first member has one more.
    assert assigned({1: 1, 2: 1}, spec) == {"a": {1: {0}, 2: {0}}, "b": {1: {0}}, "c": {2: {0}}}


def test_only_what_is_assignable() -> None:
    spec = group({}, a=member([1], {1: {0, 1, 2}}))
    assert numbers_of(assign(spec, {TOPICS[1]: {1}})) == {"a": {1: {1}}}


def test_what_members_have_stays() -> None:
    spec = group({}, a=member([1], {1: {2}}), b=member([1], {1: {0}}), c=member([1]))
    assert assigned({1: 3}, spec) == {"a": {1: {2}}, "b": {1: {0}}, "c": {1: {1}}}


def test_a_member_that_has_too_much_gives_some_to_another() -> None:
    spec = group({}, a=member([1], {1: {0, 1, 2, 3}}), b=member([1]))
    assert assigned({1: 4}, spec) == {"a": {1: {0, 1}}, "b": {1: {2, 3}}}


def test_members_that_subscribe_to_different_topics() -> None:
    spec = group({}, a=member([1, 2]), b=member([3]), c=member([2, 3]))
    assert assigned({1: 3, 2: 3, 3: 2}, spec) == {
        "a": {1: {0, 1, 2}, 2: {0, 2}},
        "b": {3: {0}},
        "c": {2: {1}, 3: {1}},
    }


def test_a_topic_that_nobody_subscribes_to_any_more() -> None:
    spec = group({}, a=member([1], {2: {0}}), b=member([1, 3], {2: {1}}))
    assert assigned({1: 1, 2: 2, 3: 1}, spec) == {"a": {1: {0}}, "b": {1: {0}, 3: {0}}}


counts = st.dictionaries(st.integers(1, 4), st.integers(1, 6), max_size=4)
held = st.dictionaries(st.integers(1, 4), st.sets(st.integers(0, 6), max_size=4), max_size=4)


def _check_even(sizes: list[int], sharing: int, partitions: int) -> None:
    total, members = sharing * partitions, len(sizes)
    for number, size in enumerate(sizes):
        assert size <= ceil(total * (number + 1) / members) - ceil(total * number / members)


@given(counts, st.lists(held, min_size=1, max_size=7), st.sets(st.integers(1, 4)))
def test_members_with_the_same_topics(
    counts: dict[int, int], had: list[dict[int, set[int]]], topics: set[int]
) -> None:
    members = {f"m{number}": member(topics, has) for number, has in enumerate(had)}
    found = assigned(counts, group({}, **members))
    wanted = [(topic, each) for topic in topics for each in range(counts.get(topic, 0))]
    sharing = -(-len(had) // len(wanted)) if wanted else 0
    for topic, each in wanted:
        assert 1 <= sum(each in its.get(topic, ()) for its in found.values()) <= sharing
    sizes = [sum(map(len, its.values())) for its in found.values()]
    _check_even(sizes, sharing, len(wanted))
    again = {name: member(topics, found[name]) for name in members}
    assert assigned(counts, group({}, **again)) == found


@given(counts, st.lists(st.tuples(held, st.sets(st.integers(1, 4))), min_size=1, max_size=7))
def test_members_with_any_topics(
    counts: dict[int, int], each: list[tuple[dict[int, set[int]], set[int]]]
) -> None:
    members = {f"m{number}": member(topics, has) for number, (has, topics) in enumerate(each)}
    found = assigned(counts, group({}, **members))
    for topic, count in counts.items():
        names = [name for name in members if TOPICS[topic] in members[name].subscribed]
        for partition in range(count):
            holders = [name for name in found if partition in found[name].get(topic, ())]
            assert set(holders) <= set(names)
            assert bool(holders) == bool(names)
            assert len(holders) <= -(-len(names) // count)


def _of(assignment: Assignment) -> int:
    return sum(len(numbers) for its in assignment.values() for numbers in its.values())


def test_many_members_and_partitions() -> None:
    members = {f"m{number:04}": member([1, 2]) for number in range(1_000)}
    partitions = {TOPICS[1]: range(700), TOPICS[2]: range(700)}
    assert _of(assign(group({}, **members), partitions)) == 1_400
