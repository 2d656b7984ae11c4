from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.draining import DrainingError, drained

PLAIN: dict[int, str | None] = dict.fromkeys((1, 2, 3, 4))


def test_the_position_in_the_assignment_is_kept() -> None:
    targets = drained(1, PLAIN, {"t": [(1, 2), (2, 1), (2, 3)]})
    assert targets == {"t": {0: (4, 2), 1: (2, 3)}}


def test_leaders_and_replicas_are_spread_evenly() -> None:
    assignments = {f"t{number}": [(1, 2, 3), (2, 1, 3), (3, 4, 1)] for number in range(12)}
    targets = drained(1, PLAIN, assignments)
    after = [
        targets[name].get(at, each)
        for name, partitions in assignments.items()
        for at, each in enumerate(partitions)
    ]
    assert Counter(broker for each in after for broker in each) == {2: 36, 3: 36, 4: 36}
    assert Counter(each[0] for each in after) == {2: 12, 3: 12, 4: 12}


def test_racks_stay_apart() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: "a", 5: "c"}
    assert drained(1, racks, {"t": [(1, 2), (3, 1)]}) == {"t": {0: (4, 2), 1: (3, 5)}}
    # No other rack is left: the copies share one; the request is not refused.
    assert drained(1, {1: "a", 2: "b", 3: "b"}, {"t": [(1, 2)]}) == {"t": {0: (3, 2)}}


def test_too_few_brokers_is_an_error_that_names_the_topics() -> None:
    with pytest.raises(DrainingError) as caught:
        drained(1, dict.fromkeys((1, 2, 3)), {"t": [(2, 3), (1, 2, 3), (3, 1, 2)], "u": [(1, 2)]})
    assert str(caught.value) == (
        "broker 1 cannot be drained: partitions of t (2) have replicas on every other live broker "
        "(2, 3)."
    )
    with pytest.raises(DrainingError, match=r"a \(1\), b \(1\), c \(1\) and 2 more topics have"):
        drained(1, {1: None}, {name: [(1,)] for name in "abcde"})


brokers = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(st.lists(brokers, max_size=12), st.lists(st.sampled_from([None, "a", "b"]), min_size=5))
def test_all_replicas_of_the_broker_move_and_no_others(
    partitions: list[tuple[int, ...]], racks: list[str | None]
) -> None:
    targets = drained(1, dict(enumerate(racks[:5], 1)), {"t": partitions}).get("t", {})
    assert set(targets) == {at for at, each in enumerate(partitions) if 1 in each}
    for at, target in targets.items():
        before = partitions[at]
        assert 1 not in target
        assert len(set(target)) == len(before)
        assert [b for b in target if b in before] == [b for b in before if b != 1]
