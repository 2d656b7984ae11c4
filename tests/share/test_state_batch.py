"""Runs of records in one state: combining old ones with new ones."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.share.record_state import RecordState
from ottla.share.state_batch import StateBatch, are_in_order, combined, updated

STATES = (RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


@st.composite
def batches(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, 30))
    last = first + draw(st.integers(0, 8))
    return StateBatch(first, last, draw(st.sampled_from(STATES)), draw(st.integers(0, 3)))


def by_offset(given_batches: list[StateBatch], start: int) -> dict[int, tuple[int, RecordState]]:
    found: dict[int, tuple[int, RecordState]] = {}
    for batch in given_batches:
        for offset in range(max(start, batch.first), batch.last + 1):
            newer = (batch.delivery_count, batch.state)
            found[offset] = max(found.get(offset, newer), newer)
    return found


@given(st.lists(batches()), st.integers(-1, 40))
def test_each_record_has_its_newest_state(given_batches: list[StateBatch], start: int) -> None:
    found = list(combined(given_batches, start))
    assert by_offset(found, -1) == by_offset(given_batches, start)
    assert sum(each.last - each.first + 1 for each in found) == len(by_offset(found, -1))
    for before, after in pairwise(found):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:]


def test_new_batches_replace_old_ones() -> None:
    old = [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    new = [StateBatch(3, 5, RecordState.ACKNOWLEDGED, 2)]
    assert list(combined(old + new, 1)) == [
        StateBatch(1, 2, RecordState.AVAILABLE, 1),
        StateBatch(3, 5, RecordState.ACKNOWLEDGED, 2),
        StateBatch(6, 9, RecordState.AVAILABLE, 1),
    ]


@given(
    st.lists(batches(), max_size=40),
    st.integers(-1, 35),
    st.lists(batches(), max_size=4),
    st.integers(-1, 35),
)
def test_an_update_is_what_combining_all_makes(
    state: list[StateBatch], begun: int, changes: list[StateBatch], start: int
) -> None:
    before = combined(state, begun)
    assert are_in_order(before)
    assert list(updated(before, changes, start)) == list(combined([*before, *changes], start))


def test_a_few_changes_of_a_large_state() -> None:
    state = [StateBatch(offset, offset, STATES[offset % 2], 1) for offset in range(1_000)]
    changes = [
        StateBatch(0, 0, RecordState.ACKNOWLEDGED, 2),
        StateBatch(400, 403, RecordState.ARCHIVED, 3),
        StateBatch(402, 410, RecordState.ARCHIVED, 3),
        StateBatch(998, 1_005, RecordState.ACKNOWLEDGED, 2),
    ]
    for start in (-1, 0, 1, 399, 401, 999, 1_000, 2_000):
        expected = list(combined([*state, *changes], start))
        assert list(updated(state, changes, start)) == expected
