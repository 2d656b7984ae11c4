"""The checker of transactions: a history without anomalies, and each one planted."""

from __future__ import annotations

from dataclasses import replace

from faults.anomaly import Anomaly, Kind, Policy
from faults.checker import check
from faults.history import (
    Acknowledged,
    Assigned,
    Committed,
    Ended,
    Ending,
    Event,
    FinalOffset,
    FinalRead,
    Initialized,
    Polled,
    Sent,
    value_of,
)
from hypothesis import given
from hypothesis import strategies as st

COMMITTED, ABORTED, UNKNOWN, OPEN = "committed", "aborted", "unknown", "open"
ID = "x"
PARTITIONS = 2
fates = st.lists(
    st.tuples(st.sampled_from([COMMITTED, ABORTED, UNKNOWN, OPEN]), st.integers(1, 4)), max_size=6
)


def commit_ends_at(events: list[Event], offset: int) -> None:
    """The group's last offset is another one."""
    last = events[-1]
    assert isinstance(last, FinalOffset)
    events[-1] = replace(last, offset=offset)


def history(outcomes: list[tuple[str, int]], *, unknown_is_committed: bool = True) -> list[Event]:
    """One transaction per outcome, with so many records, in turn in two partitions. Each takes one
    more offset in both for its marker."""
    events: list[Event] = [Initialized(0, ID, 1), Assigned(0, 0, (0, 1))]
    logs: list[list[tuple[int, str | None]]] = [[], []]
    at_ms, sequence, last = 1, 0, 0
    for number, (outcome, records) in enumerate(outcomes, 1):
        name = f"{ID}/{number}"
        is_shown = outcome == COMMITTED or (outcome == UNKNOWN and unknown_is_committed)
        for index in range(records):
            value, partition = value_of(0, sequence), index % PARTITIONS
            sequence += 1
            log = logs[partition]
            events.append(Sent(at_ms, value, partition, name))
            events.append(Acknowledged(at_ms, value, partition, len(log)))
            log.append((len(log), value if is_shown else None))
        for log in logs:
            log.append((len(log), None))
        if outcome != OPEN:
            events.append(Ending(at_ms, name, 1, outcome != ABORTED))
        if outcome in (COMMITTED, ABORTED):
            events.append(Ended(at_ms, name, 1, outcome == COMMITTED))
        if is_shown:
            last = number
        at_ms += 10
    for partition, log in enumerate(logs):
        run = tuple((offset, value) for offset, value in log if value is not None)
        if run:
            events.append(Polled(at_ms, 0, partition, run))
            offsets = ((partition, run[-1][0] + 1),)
            events.append(Committed(at_ms, at_ms, 0, offsets, None))
        events.append(FinalRead(at_ms, partition, 0, len(log), run))
    events.append(FinalOffset(at_ms, ID, last))
    return events


def found(events: list[Event]) -> tuple[Anomaly, ...]:
    return check(events, Policy.strict).anomalies


def kinds(events: list[Event]) -> set[Kind]:
    return {each.kind for each in found(events)}


def without(events: list[Event], value: str, *, of: tuple[type, ...]) -> list[Event]:
    """Without a value in events of these types."""
    changed: list[Event] = []
    for event in events:
        if isinstance(event, Polled | FinalRead) and isinstance(event, of):
            records = tuple(each for each in event.records if each[1] != value)
            changed.append(replace(event, records=records))
        else:
            changed.append(event)
    return changed


def polled_before_the_end(value: str, partition: int, offset: int) -> list[Event]:
    """By a consumer with another assignment, so that only the read itself is an anomaly."""
    return [Assigned(1, 1, (partition,)), Polled(2, 1, partition, ((offset, value),))]


@given(outcomes=fates, unknown_is_committed=st.booleans())
def test_a_history_without_anomalies(
    outcomes: list[tuple[str, int]], unknown_is_committed: bool
) -> None:
    assert found(history(outcomes, unknown_is_committed=unknown_is_committed)) == ()


def test_a_transaction_of_which_a_part_is_missing() -> None:
    for outcome in (COMMITTED, UNKNOWN):
        events = without(history([(outcome, 2)]), "0-1", of=(Polled, FinalRead))
        assert kinds(events) == {Kind.torn_transaction}


def test_a_committed_transaction_that_is_gone() -> None:
    events = history([(COMMITTED, 2)])
    for value in ("0-0", "0-1"):
        events = without(events, value, of=(Polled, FinalRead))
    assert kinds(events) == {Kind.lost_write}


def test_a_record_that_was_read_and_is_gone() -> None:
    events = without(history([(COMMITTED, 2)]), "0-1", of=(FinalRead,))
    assert kinds(events) == {Kind.torn_transaction, Kind.lost_read}


def test_an_aborted_or_open_transaction_at_the_end() -> None:
    for outcome in (ABORTED, OPEN):
        events = history([(outcome, 1)])
        final = next(e for e in events if isinstance(e, FinalRead) and e.partition == 0)
        events[events.index(final)] = replace(final, records=((0, "0-0"),))
        assert kinds(events) == {Kind.aborted_read}


def test_an_aborted_or_open_transaction_that_was_polled_only() -> None:
    for outcome in (ABORTED, OPEN):
        events = [*history([(outcome, 1)]), *polled_before_the_end("0-0", 0, 0)]
        assert Kind.aborted_read in kinds(events)


def test_an_offset_of_a_transaction_that_was_not_committed() -> None:
    for outcome in (ABORTED, OPEN):
        events = history([(COMMITTED, 1), (outcome, 1)])
        commit_ends_at(events, 2)
        assert kinds(events) == {Kind.aborted_read}


def test_a_committed_offset_that_is_gone() -> None:
    events = history([(COMMITTED, 1), (COMMITTED, 1)])
    commit_ends_at(events, 1)
    assert kinds(events) == {Kind.lost_commit}


def test_an_offset_without_the_records_of_its_transaction_and_records_without_it() -> None:
    for is_committed, offset in ((False, 2), (True, 1)):
        events = history([(COMMITTED, 1), (UNKNOWN, 1)], unknown_is_committed=is_committed)
        commit_ends_at(events, offset)
        assert kinds(events) == {Kind.torn_transaction}


def test_a_fenced_instance_that_commits() -> None:
    events = history([(COMMITTED, 1)])
    ending = next(index for index, each in enumerate(events) if isinstance(each, Ending))
    too_late = [*events[:ending], Initialized(5, ID, 2), *events[ending:]]
    assert kinds(too_late) == {Kind.zombie_commit}
    in_time = [*events[: ending + 1], Initialized(5, ID, 2), *events[ending + 1 :]]
    assert kinds(in_time) == set()


def test_a_commit_that_had_to_be_aborted() -> None:
    events = history([(UNKNOWN, 2)], unknown_is_committed=False)
    ending = next(index for index, each in enumerate(events) if isinstance(each, Ending))
    aborted: list[Event] = [Ending(9, f"{ID}/1", 1, False), Ended(9, f"{ID}/1", 1, False)]
    assert kinds([*events[: ending + 1], *aborted, *events[ending + 1 :]]) == set()


def test_a_value_that_is_read_twice() -> None:
    events = history([(COMMITTED, 1), (ABORTED, 1)])
    final = next(e for e in events if isinstance(e, FinalRead) and e.partition == 0)
    events[events.index(final)] = replace(final, records=((0, "0-0"), (1, "0-0")))
    assert kinds(events) == {Kind.duplicate}


def test_a_consumer_that_skips_a_committed_record() -> None:
    events = without(history([(COMMITTED, 5)]), "0-2", of=(Polled,))
    assert kinds(events) == {Kind.poll_skip}
