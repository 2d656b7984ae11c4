from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.turns import calls_of

from ottla.config.listener import Endpoint
from ottla.controller.image import BrokerImage, ClusterImage
from ottla.controller.placement import _rack_alternated, check_assignment, place
from ottla.protocol.errors import ApiError, ErrorCode


def broker(number: int, rack: str | None = None) -> BrokerImage:
    return BrokerImage(number, (Endpoint("PLAINTEXT", "host", 1),), rack)


def test_one_broker_gets_everything() -> None:
    assert place([broker(4)], 3, 1, 0, 99) == ((4,), (4,), (4,))


def test_first_replicas_go_round_and_copies_move_on() -> None:
    brokers = [broker(number) for number in (1, 2, 3)]
    assert place(brokers, 4, 2, 0, 0) == ((1, 2), (2, 3), (3, 1), (1, 3))
    assert place(brokers, 2, 1, 4, 0) == ((2,), (3,))


def slow_replicas(
    ring: list[int], racks: dict[int, str | None], factor: int, position: int, shift: int
) -> tuple[int, ...]:
    """The same rule, by looking at all other brokers for each replica."""
    chosen = [ring[position % len(ring)]]
    others = [
        ring[(position + 1 + (shift + step) % max(len(ring) - 1, 1)) % len(ring)]
        for step in range(len(ring) - 1)
    ]
    while len(chosen) < factor:
        used = {racks[each] for each in chosen}
        pick = next((each for each in others if racks[each] not in used), others[0])
        others.remove(pick)
        chosen.append(pick)
    return tuple(chosen)


@given(
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    st.integers(1, 9),
    st.integers(0, 30),
    st.integers(0, 1000),
)
def test_placements_are_those_of_the_slow_rule(
    racks: list[str | None], factor: int, first: int, start: int
) -> None:
    brokers = [broker(number, rack) for number, rack in enumerate(racks)]
    factor = min(factor, len(brokers))
    ring = _rack_alternated(brokers)
    of = dict(enumerate(racks))
    assert place(brokers, 60, factor, first, start) == tuple(
        slow_replicas(ring, of, factor, start + each, start + each // len(ring))
        for each in range(first, first + 60)
    )


def test_many_partitions_are_placed_at_once() -> None:
    """The controller decides on the event loop."""
    brokers = [broker(number, f"r{number % 3}") for number in range(9)]
    placed, calls = calls_of(lambda: place(brokers, 10_000, 3, 0, 5))
    assert len(placed) == 10_000
    assert calls < 100_000


@given(
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(0, 1000),
    st.integers(0, 50),
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=9, max_size=9),
    st.data(),
)
def test_placements_are_even_and_without_duplicates(
    count: int,
    partitions: int,
    start: int,
    first: int,
    racks: list[str | None],
    data: st.DataObject,
) -> None:
    factor = data.draw(st.integers(1, count))
    brokers = [broker(number, racks[number]) for number in range(count)]
    placed = place(brokers, partitions, factor, first, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - (min(leaders.values()) if len(leaders) == count else 0) <= 1
    distinct = len({each.rack for each in brokers})
    for replicas in placed:
        assert len({racks[number] for number in replicas}) == min(factor, distinct)


@pytest.mark.parametrize(
    ("factor", "message"), [(0, "must be positive"), (2, "only 1 broker(s) are registered")]
)
def test_too_few_brokers(factor: int, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        place([broker(1)], 1, factor, 0, 0)
    assert caught.value.code is ErrorCode.invalid_replication_factor
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("replicas", "factor", "message"),
    [
        ((), None, "includes an empty replica list."),
        ((1, 9), None, "includes broker 9, but no such broker is registered."),
        ((2, 1, 2), None, "includes the broker 2 more than once."),
        ((1,), 2, "which have 2 replica(s)."),
    ],
)
def test_invalid_assignments(
    image: ClusterImage, replicas: tuple[int, ...], factor: int | None, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        check_assignment(replicas, image.brokers, factor)
    assert caught.value.code is ErrorCode.invalid_replica_assignment
    assert message in str(caught.value)
    check_assignment((3, 1), image.brokers, 2)
