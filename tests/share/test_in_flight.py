"""Runs that are split at many offsets at once are as if they were split at one after another."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.share.in_flight import Batch, InFlight, Run
from ottla.share.record_state import RecordState


def in_flight(*ends: tuple[int, int]) -> InFlight:
    found = InFlight()
    for first, last in ends:
        found.add(Run(Batch(first, last), first, last, RecordState.ACQUIRED, 1))
    return found


@given(st.sets(st.integers(0, 40)))
def test_many_splits(offsets: set[int]) -> None:
    at_once, in_turn = (in_flight((2, 9), (10, 10), (15, 30)) for _ in range(2))
    at_once.split(sorted(offsets))
    for offset in offsets:
        in_turn.within(offset, 50)
    assert [(run.first, run.last) for run in at_once.runs] == [
        (run.first, run.last) for run in in_turn.runs
    ]
