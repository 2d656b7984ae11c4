"""The most specific quota applies."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.quotas.entity import DEFAULT, Entity, Kind
from ottla.quotas.limits import Limits, Share

LEVELS = (
    (Entity("u", "c"), Share("u", "c")),
    (Entity("u", DEFAULT), Share("u", "c")),
    (Entity("u"), Share("u", "")),
    (Entity(DEFAULT, "c"), Share("u", "c")),
    (Entity(DEFAULT, DEFAULT), Share("u", "c")),
    (Entity(DEFAULT), Share("u", "")),
    (Entity(None, "c"), Share("", "c")),
    (Entity(None, DEFAULT), Share("", "c")),
)
"""The most specific first, with who shares the quota."""


def limits_of(*entities: Entity) -> Limits:
    limits = Limits()
    for number, entity in enumerate(entities):
        limits.set(entity, {Kind.PRODUCE: number + 1})
    return limits


@pytest.mark.parametrize("first", range(8))
def test_each_level_comes_before_those_below(first: int) -> None:
    entities = [entity for entity, _ in LEVELS[first:]]
    found = limits_of(*entities).find(Kind.PRODUCE, "u", "c")
    assert found == (LEVELS[first][1], 1)


def test_every_two_levels() -> None:
    for (high, share), (low, _) in combinations(LEVELS, 2):
        assert limits_of(low, high).find(Kind.PRODUCE, "u", "c") == (share, 2)


def test_kinds_are_apart() -> None:
    limits = Limits()
    limits.set(Entity("u"), {Kind.FETCH: 5})
    limits.set(Entity(None, "c"), {Kind.PRODUCE: 7})
    assert limits.find(Kind.PRODUCE, "u", "c") == (Share("", "c"), 7)
    assert limits.find(Kind.FETCH, "u", "c") == (Share("u", ""), 5)
    assert limits.find(Kind.MUTATION, "u", "c") is None


def test_a_removed_quota_applies_no_more() -> None:
    limits = limits_of(Entity("u"), Entity(DEFAULT))
    limits.set(Entity("u"), {})
    assert limits.find(Kind.PRODUCE, "u", "") == (Share("u", ""), 2)
    assert limits
    limits.set(Entity(DEFAULT), {})
    assert not limits


NAMES = st.sampled_from(["a", "b"])
ENTITIES = st.builds(
    Entity,
    st.sampled_from([None, DEFAULT, "a", "b"]),
    st.sampled_from([None, DEFAULT, "a", "b"]),
).filter(lambda entity: entity != Entity())


@given(st.dictionaries(ENTITIES, st.integers(1, 9)), NAMES, NAMES)
def test_as_the_list_of_levels(quotas: dict[Entity, int], user: str, client: str) -> None:
    limits = Limits()
    for entity, value in quotas.items():
        limits.set(entity, {Kind.REQUEST: value})
    expected = None
    for entity, _ in LEVELS:
        named = Entity(
            entity.user and user,
            entity.client_id and client,
        )
        if named in quotas:
            expected = quotas[named]
            break
    found = limits.find(Kind.REQUEST, user, client)
    decided = limits.deciding(Kind.REQUEST, user, client)
    assert (decided and decided[1]) == expected
    assert (None if found is None else found[1]) == expected


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        ([Entity("u", DEFAULT), Entity("u")], (Share("u", ""), 2)),
        ([Entity("u", DEFAULT)], None),
        ([Entity(None, DEFAULT)], None),
    ],
)
def test_a_client_without_an_id(
    entities: list[Entity], expected: tuple[Share, float] | None
) -> None:
    """As Kafka: no quota for client ids applies to it, not even the default one."""
    assert limits_of(*entities).find(Kind.PRODUCE, "u", "") == expected
