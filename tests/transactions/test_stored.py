"""A transactional id's value: what a transition keeps, and when the epochs are used up."""

from __future__ import annotations

import pytest
from tests.transactions.values import NOW_MS, value_in

from ottla.transactions.state import EMPTY, ONGOING
from ottla.transactions.stored import MAX_EPOCH, is_exhausted


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, False), (MAX_EPOCH - 2, False), (MAX_EPOCH - 1, True), (MAX_EPOCH, True)],
)
def test_the_last_epoch_is_left_for_a_fence(epoch: int, expected: bool) -> None:
    assert is_exhausted(epoch) is value_in(EMPTY, epoch=epoch).is_exhausted is expected


def test_a_transition_keeps_the_producer_id_before_it() -> None:
    value = value_in(EMPTY, previous_producer_id=1).moved(ONGOING, NOW_MS, producer_id=7)
    assert (value.producer_id, value.previous_producer_id) == (7, 1000)
    assert (value.state, value.last_update_ms) == (ONGOING, NOW_MS)


@pytest.mark.parametrize("changes", [{"epoch": -1}, {"epoch": MAX_EPOCH + 1}, {"producer_id": -1}])
def test_values_that_no_producer_has(changes: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        value_in(EMPTY).moved(ONGOING, NOW_MS, **changes)
