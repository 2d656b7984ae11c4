"""`uniform` gives what Apache Kafka's does; cases and results follow its tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.consumer.assignors.specs import group, member, numbers_of

from ottla.groups.consumer.assignors import range_assignor, uniform
from ottla.groups.consumer.assignors.spec import (
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
)


def ranged(spec: GroupSpec) -> dict[str, dict[int, set[int]]]:
    return numbers_of(range_assignor.assign(spec))


def uniformed(spec: GroupSpec) -> dict[str, dict[int, set[int]]]:
    return numbers_of(uniform.assign(spec))


# uniform, one subscription


def test_the_last_members_get_the_extra_partitions() -> None:
    spec = group({1: 2, 3: 3}, A=member([1, 3]), B=member([1, 3]))
    assert uniformed(spec) == {"A": {1: {0, 1}}, "B": {3: {0, 1, 2}}}


def test_uniform_with_more_members_than_partitions() -> None:
    spec = group({3: 2}, A=member([3]), B=member([3]), C=member([3]))
    assert uniformed(spec) == {"A": {}, "B": {3: {0}}, "C": {3: {1}}}


def test_uniform_takes_away_what_is_beyond_the_quota() -> None:
    spec = group(
        {1: 3, 2: 3},
        A=member([1, 2], {1: {0, 1}, 2: {0, 1}}),
        B=member([1, 2], {1: {2}, 2: {2}}),
    )
    assert uniformed(spec) == {"A": {1: {0, 1}, 2: {0}}, "B": {1: {2}, 2: {1, 2}}}


def test_uniform_spreads_added_partitions_and_moves_none() -> None:
    spec = group(
        {1: 5, 2: 6},
        A=member([1, 2], {1: {0, 2}, 2: {0}}),
        B=member([1, 2], {1: {1}, 2: {1, 2}}),
    )
    assert uniformed(spec) == {"A": {1: {0, 2, 3, 4}, 2: {0}}, "B": {1: {1}, 2: {1, 2, 3, 4, 5}}}


def test_uniform_gives_a_new_member_its_share() -> None:
    spec = group(
        {1: 3, 2: 3},
        A=member([1, 2], {1: {0, 2}, 2: {0}}),
        B=member([1, 2], {1: {1}, 2: {1, 2}}),
        C=member([1, 2]),
    )
    assert uniformed(spec) == {"A": {1: {0, 2}}, "B": {1: {1}, 2: {1}}, "C": {2: {0, 2}}}


def test_uniform_hands_out_what_a_leaving_member_had() -> None:
    spec = group(
        {1: 3, 2: 3},
        A=member([1, 2], {1: {0}, 2: {0}}),
        B=member([1, 2], {1: {1}, 2: {1}}),
    )
    assert uniformed(spec) == {"A": {1: {0, 2}, 2: {0}}, "B": {1: {1}, 2: {1, 2}}}


def test_uniform_takes_away_topics_that_nobody_subscribes_to_any_more() -> None:
    spec = group(
        {1: 2, 2: 2},
        A=member([2], {1: {0}, 2: {0}}),
        B=member([2], {1: {1}, 2: {1}}),
    )
    assert uniformed(spec) == {"A": {2: {0}}, "B": {2: {1}}}


def test_who_has_an_extra_partition_keeps_it() -> None:
    held = {"A": {1: {0}}, "B": {1: {1, 2}}, "C": {1: {3}}}
    spec = group({1: 4}, **{name: member([1], parts) for name, parts in held.items()})
    assert uniformed(spec) == held


# uniform, different subscriptions


def test_uniform_balances_what_subscriptions_allow() -> None:
    spec = group({1: 3, 3: 6}, A=member([1, 3]), B=member([3]))
    assert uniformed(spec) == {"A": {1: {0, 1, 2}, 3: {4}}, "B": {3: {0, 1, 2, 3, 5}}}


def test_uniform_with_more_subscribers_than_partitions() -> None:
    spec = group({1: 2, 3: 1}, A=member([3]), B=member([3]), C=member([1]))
    assert uniformed(spec) == {"A": {3: {0}}, "B": {}, "C": {1: {0, 1}}}


def test_uniform_moves_from_the_most_to_the_least() -> None:
    spec = group(
        {1: 6, 2: 4, 3: 4},
        A=member([1], {1: {0, 1, 2}}),
        B=member([1, 2], {1: {3}, 2: {0}}),
        C=member([1, 2, 3], {1: {4, 5}, 2: {1, 2, 3}, 3: {0, 1, 2, 3}}),
    )
    assert uniformed(spec) == {
        "A": {1: {0, 1, 2, 5}},
        "B": {1: {3}, 2: {0, 1, 2, 3}},
        "C": {1: {4}, 3: {0, 1, 2, 3}},
    }


def test_uniform_adds_partitions_where_they_may_be_read() -> None:
    spec = group(
        {1: 6, 2: 5, 3: 3, 4: 3},
        A=member([1, 3], {1: {0, 1, 2, 3}, 3: {0, 1}}),
        B=member([1, 2, 3, 4], {2: {0, 1, 2}, 4: {0, 1, 2}}),
    )
    assert uniformed(spec) == {
        "A": {1: {0, 1, 2, 3, 4, 5}, 3: {0, 1, 2}},
        "B": {2: {0, 1, 2, 3, 4}, 4: {0, 1, 2}},
    }


# both assignors


@pytest.mark.parametrize("assign", [range_assignor.assign, uniform.assign])
def test_a_topic_that_does_not_exist_is_an_error(assign: Assignor) -> None:
    with pytest.raises(AssignorError, match="does not exist"):
        assign(group({1: 3}, A=member([2])))
    with pytest.raises(AssignorError, match="does not exist"):
        assign(group({1: 3}, A=member([2]), B=member([1])))


def test_without_members_or_topics_nothing_is_assigned() -> None:
    assert uniformed(group({1: 3})) == ranged(group({1: 3})) == {}
    assert uniformed(group({1: 3}, A=member([]))) == {}
    assert ranged(group({1: 3}, A=member([]))) == {"A": {}}


subscriptions = st.frozensets(st.sampled_from(range(1, 6)), max_size=4)
groups = st.tuples(
    st.dictionaries(st.sampled_from("ABCDEFG"), subscriptions, min_size=1),
    st.fixed_dictionaries({number: st.integers(1, 9) for number in range(1, 6)}),
)


def of(
    subscribed: dict[str, frozenset[int]], counts: dict[int, int], held: Assignment
) -> GroupSpec:
    numbers = numbers_of(held)
    members = {name: member(topics, numbers.get(name)) for name, topics in subscribed.items()}
    return group(counts, **members)


def owners(assignment: Assignment) -> dict[tuple[int, int], list[str]]:
    owned: dict[tuple[int, int], list[str]] = {}
    for name, target in numbers_of(assignment).items():
        for topic, partitions in target.items():
            for partition in partitions:
                owned.setdefault((topic, partition), []).append(name)
    return owned


@pytest.mark.parametrize("assign", [range_assignor.assign, uniform.assign])
@given(groups, subscriptions)
def test_each_partition_has_one_owner_that_subscribes(
    assign: Assignor,
    first: tuple[dict[str, frozenset[int]], dict[int, int]],
    changed: frozenset[int],
) -> None:
    subscribed, counts = first
    before = assign(of(subscribed, counts, {}))
    for topics in ({}, {"C": changed}, dict.fromkeys(subscribed, changed)):
        now = subscribed | topics
        after = assign(of(now, counts, before))
        owned = owners(after)
        wanted = {
            (topic, partition)
            for topic in {each for topics in now.values() for each in topics}
            for partition in range(counts[topic])
        }
        assert set(owned) == wanted
        for (topic, _), names in owned.items():
            assert len(names) == 1
            assert topic in now[names[0]]


@given(groups)
def test_uniform_moves_nothing_when_nothing_changed(
    first: tuple[dict[str, frozenset[int]], dict[int, int]],
) -> None:
    subscribed, counts = first
    subscribed = dict.fromkeys(subscribed, next(iter(subscribed.values())))
    before = uniform.assign(of(subscribed, counts, {}))
    assert uniform.assign(of(subscribed, counts, before)) == before
    sizes = [sum(map(len, target.values())) for target in before.values()]
    assert not sizes or max(sizes) - min(sizes) <= 1
