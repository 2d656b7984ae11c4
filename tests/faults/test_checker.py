from collections.abc import Callable
from dataclasses import replace

import pytest
from faults.anomaly import Anomaly, Kind, Policy
from faults.checker import check
from faults.history import (
    Acknowledged,
    Elected,
    Epochs,
    Event,
    FinalRead,
    Polled,
    Refused,
    Sent,
)
from hypothesis import given
from hypothesis import strategies as st

History = list[Event]
Clean = Callable[..., History]

lengths = st.lists(st.integers(0, 12), min_size=1, max_size=3)


def kinds(events: History, policy: Policy = Policy.strict) -> set[Kind]:
    """The kinds of anomalies that the policy forbids."""
    return {each.kind for each in check(events, policy).forbidden}


def without_polls(events: History) -> History:
    return [event for event in events if not isinstance(event, Polled)]


def final_of(events: History, partition: int) -> FinalRead:
    finals = (event for event in events if isinstance(event, FinalRead))
    return next(event for event in finals if event.partition == partition)


def with_final(events: History, new: FinalRead) -> History:
    old = final_of(events, new.partition)
    return [new if event is old else event for event in events]


@given(lengths=lengths, batch=st.integers(1, 5), policy=st.sampled_from(Policy))
def test_a_clean_history_has_no_anomalies(
    clean_history: Clean, lengths: list[int], batch: int, policy: Policy
) -> None:
    assert check(clean_history(lengths, batch), policy).anomalies == ()


@given(length=st.integers(1, 20), data=st.data())
def test_a_lost_write_is_found(clean_history: Clean, length: int, data: st.DataObject) -> None:
    """One record is lost and the following ones moved up, as when a leader lost it."""
    events = without_polls(clean_history([length]))
    gone = data.draw(st.integers(0, length - 1))
    values = [value for _, value in final_of(events, 0).records]
    del values[gone]
    final = FinalRead(10**6, 0, 0, length - 1, tuple(enumerate(values)))
    assert Kind.lost_write in kinds(with_final(events, final))


@given(length=st.integers(2, 20), data=st.data())
def test_without_a_final_read_a_loss_below_a_polled_offset_is_found(
    clean_history: Clean, length: int, data: st.DataObject
) -> None:
    gone = data.draw(st.integers(0, length - 2))
    events: History = []
    for event in clean_history([length], batch=1):
        if isinstance(event, Polled) and event.records[0][0] == gone:
            continue
        if not isinstance(event, FinalRead):
            events.append(event)
    assert Kind.lost_write in kinds(events)


@given(length=st.integers(1, 20), data=st.data())
def test_a_lost_read_is_found(clean_history: Clean, length: int, data: st.DataObject) -> None:
    events = clean_history([length])
    kept = data.draw(st.integers(0, length - 1))
    final = final_of(events, 0)
    final = replace(final, end=kept, records=final.records[:kept])
    assert {Kind.lost_read, Kind.lost_write} <= kinds(with_final(events, final))


@given(length=st.integers(1, 20), data=st.data())
def test_a_read_of_a_rejected_record_is_found(
    clean_history: Clean, length: int, data: st.DataObject
) -> None:
    which = data.draw(st.integers(0, length - 1))
    events: History = []
    for event in clean_history([length]):
        if isinstance(event, Acknowledged) and event.offset == which:
            events.append(Refused(event.at_ms, event.value, 0, "MSG_SIZE_TOO_LARGE"))
        else:
            events.append(event)
    assert kinds(events) == {Kind.aborted_read}


@given(length=st.integers(1, 20), data=st.data())
def test_a_value_that_was_never_sent_is_found(
    clean_history: Clean, length: int, data: st.DataObject
) -> None:
    which = data.draw(st.integers(0, length - 1))
    sent = [event for event in clean_history([length]) if isinstance(event, Sent)]
    events = [event for event in clean_history([length]) if event != sent[which]]
    assert kinds(events) == {Kind.phantom_read}


@given(length=st.integers(2, 20), data=st.data())
def test_two_values_of_an_offset_are_found(
    clean_history: Clean, length: int, data: st.DataObject
) -> None:
    events = clean_history([length])
    one, other = data.draw(
        st.lists(st.integers(0, length - 1), min_size=2, max_size=2, unique=True)
    )
    records = list(final_of(events, 0).records)
    records[one], records[other] = (
        (one, records[other][1]),
        (other, records[one][1]),
    )
    final = replace(final_of(events, 0), records=tuple(records))
    assert Kind.two_values in kinds(with_final(events, final))


@given(length=st.integers(1, 20), data=st.data())
def test_a_duplicate_is_found(clean_history: Clean, length: int, data: st.DataObject) -> None:
    events = without_polls(clean_history([length]))
    final = final_of(events, 0)
    value = final.records[data.draw(st.integers(0, length - 1))][1]
    final = replace(final, end=length + 1, records=(*final.records, (length, value)))
    assert kinds(with_final(events, final)) == {Kind.duplicate}
    assert kinds(with_final(events, final), Policy.acks_1) == set()


@given(length=st.integers(2, 20), data=st.data())
def test_a_reordered_pair_is_found(clean_history: Clean, length: int, data: st.DataObject) -> None:
    """No client learned an offset, so only the order shows the anomaly."""
    at = data.draw(st.integers(0, length - 2))
    events = [
        replace(event, offset=-1) if isinstance(event, Acknowledged) else event
        for event in without_polls(clean_history([length], producers=1))
    ]
    values = [value for _, value in final_of(events, 0).records]
    values[at], values[at + 1] = values[at + 1], values[at]
    final = replace(final_of(events, 0), records=tuple(enumerate(values)))
    events = with_final(events, final)
    for policy in Policy:
        assert kinds(events, policy) == {Kind.reordered}, "no leader has changed"
    elected = [Elected(0, 0, 1, 0, (0, 1)), Elected(1, 0, 2, 1, (1,))]
    begins = at + 1
    moved = [*elected, *events, Epochs(10**6, 0, ((0, 0), (1, begins)))]
    assert kinds(moved, Policy.acks_1) == set(), "the request to the leader before was sent again"
    assert kinds(moved) == {Kind.reordered}
    moved[-1] = Epochs(10**6, 0, ((0, 0), (1, begins + 1)))
    assert kinds(moved, Policy.acks_1) == {Kind.reordered}, "the first leader has appended it"


@given(length=st.integers(2, 20), data=st.data())
def test_an_offset_gap_is_found(clean_history: Clean, length: int, data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, length - 1))
    events = without_polls(clean_history([length]))
    final = final_of(events, 0)
    records = tuple(record for record in final.records if record[0] != gone)
    assert Kind.offset_gap in kinds(with_final(events, replace(final, records=records)))


def cut_at(
    clean_history: Clean, start: int, *, elected_ms: int, isr: tuple[int, ...]
) -> tuple[Anomaly, ...]:
    """Broker 0 acknowledged four records; the log of broker 1, the next to lead, ends at `start`.

    Returns the anomalies under each policy: strict, acks-1 and unclean.
    """
    events = without_polls(clean_history([4]))
    final = final_of(events, 0)
    final = replace(final, end=2, records=final.records[:2])
    events = [
        Elected(1, 0, 0, 0, isr),
        *with_final(events, final)[:-1],
        Elected(elected_ms, 0, 1, 1, (1,)),
        Epochs(10**6, 0, ((0, 0), (1, start))),
    ]
    return tuple(anomaly for policy in Policy for anomaly in check(events, policy).forbidden)


def test_acks_1_excuses_records_that_only_the_deposed_leader_had(clean_history: Clean) -> None:
    """A clean election: acks=all and unclean elections do not excuse it."""
    found = cut_at(clean_history, 2, elected_ms=500, isr=(0, 1))
    assert [each.kind for each in found] == [Kind.lost_write] * 4


def test_an_unclean_election_excuses_records_outside_the_new_log(clean_history: Clean) -> None:
    found = cut_at(clean_history, 2, elected_ms=500, isr=(0,))
    assert [each.kind for each in found] == [Kind.lost_write] * 2


def test_a_leader_whose_log_has_the_offset_excuses_nothing(clean_history: Clean) -> None:
    found = cut_at(clean_history, 4, elected_ms=500, isr=(0,))
    assert [each.kind for each in found] == [Kind.lost_write] * 6


def test_an_unclean_election_before_the_acknowledgement_excuses_nothing(
    clean_history: Clean,
) -> None:
    found = cut_at(clean_history, 2, elected_ms=2, isr=(0,))
    assert [each.kind for each in found] == [Kind.lost_write] * 6


def test_an_unclean_leader_may_bring_back_an_older_record() -> None:
    """Offset 0 had 0-0 of epoch 0, then 1-0 of epoch 1, then 0-0 again, which a retry had put at 1.

    0-0 was not committed before: only broker 2 had it besides its leader.
    """
    elected = (Elected(1, 0, 0, 0, (0, 1)), Elected(5, 0, 1, 1, (1,)), Elected(20, 0, 2, 2, (2,)))
    history: History = [
        Sent(2, "0-0", 0),
        Sent(2, "1-0", 0),
        *elected,
        Acknowledged(10, "1-0", 0, 0, 1),
        Acknowledged(11, "0-0", 0, 1, 1),
        Polled(30, 1, 0, ((0, "0-0"),), (0,)),
        FinalRead(90, 0, 0, 1, ((0, "0-0"),)),
        Epochs(90, 0, ((0, 0), (2, 1))),
    ]
    assert kinds(history, Policy.unclean) == set()
    assert kinds(history) == {Kind.lost_write, Kind.two_values, Kind.duplicate}


def test_a_deposed_leader_may_still_acknowledge_acks_1(clean_history: Clean) -> None:
    """Offset 1 was assigned twice: by the leader since 2 ms, and later by its predecessor."""
    events = without_polls(clean_history([2]))
    final = replace(final_of(events, 0), records=((0, "0-0"), (1, "0-1")))
    history: History = [
        Elected(1, 0, 0, 0, (0, 1)),
        Elected(2, 0, 1, 1, (1,)),
        Sent(3, "0-1", 0),
        *with_final(events, final),
        Epochs(10**6, 0, ((0, 0), (1, 1))),
    ]
    assert kinds(history, Policy.acks_1) == set()
    assert kinds(history) == {Kind.lost_write, Kind.two_values}


@pytest.mark.parametrize("policy", Policy)
def test_no_policy_allows_a_phantom(clean_history: Clean, policy: Policy) -> None:
    assert kinds([*clean_history([2]), Polled(9_999, 1, 0, ((0, "7-7"),))], policy) >= {
        Kind.phantom_read
    }
