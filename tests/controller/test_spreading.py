"""Replicas are spread evenly, with few moves, and racks stay apart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.spreading import SpreadingError, spread

PLAIN: dict[int, str | None] = dict.fromkeys(range(1, 9))


def test_a_new_broker_gets_its_share_and_little_else_moves() -> None:
    before = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]
    targets = spread(before, [1, 2, 3, 4], PLAIN)
    after = [targets.get(index, tuple(each)) for index, each in enumerate(before)]
    assert Counter(broker for each in after for broker in each) == {1: 3, 2: 3, 3: 3, 4: 3}
    assert sum(len(set(new) - set(old)) for new, old in zip(after, before, strict=True)) == 3
    leaders = Counter(each[0] for each in after)
    assert max(leaders.values()) - min(leaders[each] for each in (1, 2, 3, 4)) <= 1


def test_what_is_even_stays() -> None:
    assert spread([[1, 2], [2, 1]], [1, 2], PLAIN) == {}


def test_replicas_leave_brokers_that_are_not_chosen() -> None:
    assert spread([[1, 2]], [2, 3], PLAIN) == {0: (2, 3)}
    assert spread([[1]], [3], PLAIN) == {0: (3,)}


def test_another_number_of_replicas_moves_no_other() -> None:
    before = [[1], [1], [1]]
    assert spread(before, [1, 2, 3], PLAIN, factor=2, even=False) == {
        0: (1, 2),
        1: (1, 3),
        2: (1, 2),
    }
    assert spread([[1, 2, 3], [1, 3, 2]], [1, 2, 3], PLAIN, factor=2, even=False) == {
        0: (1, 2),
        1: (1, 3),
    }


def test_racks_stay_apart() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    # The added replica goes to the other rack, and the one to drop shares one.
    assert spread([[1]], [1, 2, 3, 4], racks, factor=2, even=False) == {0: (1, 3)}
    assert spread([[1, 3, 2]], [1, 2, 3], racks, factor=2, even=False) == {0: (1, 3)}
    # Not from broker 3: its replicas are the only ones in rack b.
    racks = {1: "a", 2: "a", 3: "b"}
    assert spread([[1, 3], [1, 3]], [1, 2, 3], racks) == {0: (2, 3)}


def test_too_few_brokers_is_an_error() -> None:
    with pytest.raises(SpreadingError, match="3 replicas need 3 brokers, but there is 1: 2"):
        spread([[1, 2, 3]], [2], PLAIN)


@given(
    st.data(),
    st.integers(1, 4),
    st.lists(st.sampled_from(range(1, 9)), min_size=4, max_size=8, unique=True),
)
def test_every_partition_has_its_replicas_and_no_broker_too_many(
    data: st.DataObject, factor: int, brokers: list[int]
) -> None:
    rows = st.lists(st.sampled_from(range(1, 9)), min_size=1, max_size=4, unique=True)
    before = data.draw(st.lists(rows, min_size=1, max_size=12))
    targets = spread(before, brokers, PLAIN, factor=factor)
    after = [targets.get(index, tuple(each)) for index, each in enumerate(before)]
    assert all(len(set(each)) == len(each) == factor for each in after)
    assert {broker for each in after for broker in each} <= set(brokers)
    load = Counter(broker for each in after for broker in each)
    assert max(load.values()) - min(load[each] for each in brokers) <= 1
