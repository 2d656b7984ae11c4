from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.listener import Endpoint
from ottla.controller.image import BrokerImage, ClusterImage
from ottla.controller.placement import check_assignment, place
from ottla.protocol.errors import ApiError, ErrorCode


def broker(number: int, rack: str | None = None) -> BrokerImage:
    return BrokerImage(number, (Endpoint("PLAINTEXT", "host", 1),), rack)


def test_one_broker_gets_everything() -> None:
    assert place([broker(4)], 3, 1, 0, 99) == ((4,), (4,), (4,))


def test_first_replicas_go_round_and_copies_move_on() -> None:
    brokers = [broker(number) for number in (1, 2, 3)]
    assert place(brokers, 4, 2, 0, 0) == ((1, 2), (2, 3), (3, 1), (1, 3))
    assert place(brokers, 2, 1, 4, 0) == ((2,), (3,))


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
