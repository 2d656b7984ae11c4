from collections.abc import Callable
from dataclasses import replace

import pytest
from faults.anomaly import Kind, Policy
from faults.consumers import check
from faults.elections import Elections
from faults.history import (
    Assigned,
    Committed,
    Elected,
    Epochs,
    Event,
    FinalCommitted,
    Polled,
    Revoked,
)
from hypothesis import given
from hypothesis import strategies as st

Clean = Callable[..., list[Event]]


def kinds(*events: Event, policy: Policy = Policy.strict) -> list[Kind]:
    return [each.kind for each in check(events, Elections(events), policy)]


def polled(at_ms: int, consumer: int, *offsets: int) -> Polled:
    return Polled(at_ms, consumer, 0, tuple((offset, f"0-{offset}") for offset in offsets))


def committed(at_ms: int, offset: int, error: str | None = None) -> Committed:
    return Committed(at_ms, at_ms - 1, 0, ((0, offset),), error)


@given(length=st.integers(3, 20), data=st.data())
def test_a_missing_poll_is_a_skip(clean_history: Clean, length: int, data: st.DataObject) -> None:
    events = clean_history([length], batch=1)
    polls = [event for event in events if isinstance(event, Polled)]
    gone = polls[data.draw(st.integers(1, length - 2))]
    assert kinds(*(event for event in events if event is not gone)) == [Kind.poll_skip]


@given(length=st.integers(2, 20), data=st.data())
def test_a_repeated_poll_is_nonmonotonic(
    clean_history: Clean, length: int, data: st.DataObject
) -> None:
    events = clean_history([length], batch=1)
    polls = [event for event in events if isinstance(event, Polled)]
    again = polls[data.draw(st.integers(0, length - 2))]
    late = replace(again, at_ms=10**6)
    assert kinds(*events, late) == [Kind.nonmonotonic_poll]


def test_a_position_is_lost_with_the_records_of_a_leader_that_another_one_brings_back() -> None:
    """The surviving log has the first record, and none of the second leader's (seed 3006)."""
    first = Elected(0, 0, 1, 0, (1, 2)), Polled(5, 1, 0, ((0, "a"),), (0,))
    unclean = Elected(10, 0, 2, 1, (2,)), Elected(20, 0, 1, 2, (1,))
    again = Polled(25, 1, 0, ((0, "b"),), (2,))
    rest = Elected(30, 0, 3, 3, (3,)), Epochs(90, 0, ((0, 0), (3, 1)))
    assert kinds(*first, *unclean, again, *rest, policy=Policy.strict) == [Kind.nonmonotonic_poll]

    def is_forbidden(*events: Event) -> list[bool]:
        found = check(events, Elections(events), Policy.unclean)
        return [each.because is None for each in found]

    assert is_forbidden(*first, *unclean, again, *rest) == [False]
    # Without that leader, or before it.
    assert is_forbidden(*first, unclean[0], again, *rest) == [True]
    assert is_forbidden(*first, unclean[0], replace(again, at_ms=15), unclean[1], *rest) == [True]


def test_a_new_owner_starts_at_the_committed_offset() -> None:
    start = (Assigned(1, 0, (0,)), polled(2, 0, 0, 1), committed(4, 2), Revoked(5, 0, (0,)))
    assert kinds(*start, Assigned(6, 1, (0,)), polled(7, 1, 2, 3)) == []
    assert kinds(*start, Assigned(6, 1, (0,)), polled(7, 1, 1, 2)) == [Kind.lost_commit]
    assert kinds(*start, Assigned(6, 1, (0,)), polled(7, 1, 3)) == [Kind.poll_skip]


def test_a_replaced_coordinator_may_return_older_offsets() -> None:
    """It answers OffsetFetch from memory; the next owner's coordinator knows all commits."""
    start = (Assigned(1, 0, (0,)), polled(2, 0, 0, 1), committed(4, 2), Revoked(5, 0, (0,)))
    stale = Assigned(6, 1, (0,), by_deposed=True)
    assert kinds(*start, stale, polled(7, 1, 1, 2)) == []
    assert kinds(*start, stale, polled(7, 1, 3)) == [Kind.poll_skip]
    assert kinds(*start, Assigned(6, 2, (0,)), stale, polled(8, 2, 1)) == [Kind.lost_commit]


def test_a_commit_without_a_response_may_count_or_not() -> None:
    start = (Assigned(1, 0, (0,)), polled(2, 0, 0, 1), committed(4, 2, "timed out"))
    for offset in (0, 1, 2):
        assert kinds(*start, Assigned(6, 1, (0,)), polled(7, 1, offset)) == []
    assert kinds(*start, Assigned(6, 1, (0,)), polled(7, 1, 3)) == [Kind.poll_skip]


@pytest.mark.parametrize("offset", [-1, 1])
def test_the_final_offset_must_not_be_below_a_commit(offset: int) -> None:
    assert kinds(committed(4, 2), FinalCommitted(9, ((0, offset),))) == [Kind.lost_commit]
