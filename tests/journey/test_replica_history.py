"""What steps say about replicas: exact times, bounds, or unknown."""

from collections.abc import Sequence

from ottla.journey.offset_history import When
from ottla.journey.replica_history import (
    Copy,
    Dropped,
    copies,
    dropped,
    elections,
    leader_of,
    leadership_at,
    leaderships,
    leaderships_between,
)
from ottla.timelines.step import Kind, Step


def role(
    at: int,
    leader: int,
    epoch: int,
    isr: Sequence[int],
    partition_epoch: int = -1,
    end: int = 0,
    *,
    found: bool = False,
) -> Step:
    name = (leader, epoch, tuple(isr), partition_epoch)
    return Step(Kind.IN_SYNC, name, at, at, end, end, end, found)


def fetch(
    at: int,
    before: int,
    last: int,
    *,
    broker: int = 2,
    until: int | None = None,
    first: int | None = None,
    sight: bool = False,
) -> Step:
    first = last if first is None else first
    return Step(Kind.REPLICA, str(broker), at, until or at, before, first, last, sight)


def test_leaderships_are_listed_once_and_in_order() -> None:
    one, two = role(10, 1, 4, (1, 2), 7), role(20, 2, 5, (2,), 8)
    again = role(30, 2, 5, (2,), 8, found=True)
    known = leaderships([two, one, one, again])
    assert [(leadership.since_ms, leadership.leader) for leadership in known] == [(10, 1), (20, 2)]
    assert leadership_at(known, 9) is None
    first, second = leadership_at(known, 19), leadership_at(known, 25)
    assert first is not None
    assert first.leader_epoch == 4
    assert second is not None
    assert second.isr == (2,)
    assert leader_of(known, 5) == 2
    assert leader_of(known, 6) is None


def test_a_leader_that_is_not_believed_yet_is_no_other_leadership() -> None:
    """A broker stops, restarts and leads: the previous state shows an unclean election."""
    steps = [
        role(10, 2, 4, (2,), 7),
        role(20, -1, 4, (2,), 7, found=True),
        role(30, -1, 5, (1,), 8),
        role(31, 1, 5, (1,), 8),
    ]
    for since in (0, 1):
        known = leaderships(steps[since:])
        assert [leadership.leader for leadership in known] == [2 if since == 0 else -1, 1]
        assert known[-1].since_ms == 30
        assert elections(known, [])[-1].unclean is True
    gone = leaderships([steps[0], role(20, -1, 5, (2,), 8)])
    assert [leadership.leader for leadership in gone] == [2, -1]


def test_a_fetch_that_passed_is_exact_or_bounded_as_its_step_is() -> None:
    steps = [fetch(10, 0, 40, until=90, first=5)]
    assert copies(steps, 3) == {2: Copy(When(10, 10), 40)}
    assert copies(steps, 30) == {2: Copy(When(10, 90), 40)}
    assert copies(steps, 40) == {2: Copy(None, 40)}


def test_a_first_sight_beyond_the_offset_bounds_it_from_above_only() -> None:
    assert copies([fetch(10, 50, 50, sight=True)], 30) == {2: Copy(When(None, 10), 50)}


def test_a_first_sight_before_the_offset_bounds_it_from_both_sides() -> None:
    """A topic's first record, copied within the step that begins with the first fetch."""
    steps = [fetch(10, 0, 1, until=90, first=0, sight=True)]
    assert copies(steps, 0) == {2: Copy(When(10, 90), 1)}


def test_a_hole_between_steps_is_a_bound() -> None:
    steps = [fetch(10, 0, 10), fetch(50, 20, 30)]
    assert copies(steps, 15)[2].when == When(None, 50)
    assert copies(steps, 25)[2].when == When(None, 50)


def test_a_follower_that_went_back_no_longer_has_it() -> None:
    steps = [fetch(10, 0, 10), fetch(20, 4, 4, sight=True)]
    assert copies(steps, 8) == {2: Copy(None, 4)}
    steps.append(fetch(30, 4, 12))
    assert copies(steps, 8)[2].when == When(30, 30)


def test_a_fetch_before_our_own_truncation_was_another_record() -> None:
    cut = Step(Kind.CUT, (2, 5, (2,), -1), 20, 20, 5, 5, 10)
    assert copies([fetch(10, 0, 10), cut], 7) == {}
    assert copies([fetch(10, 0, 10), cut], 3)[2].when == When(10, 10)


def test_a_fetch_before_the_log_was_opened_shorter_was_another_record() -> None:
    opened = Step(Kind.OPENED, None, 20, 20, 5, 5, 5)
    assert copies([fetch(10, 0, 10), opened], 7) == {}
    assert copies([fetch(10, 0, 10), opened], 3)[2].when == When(10, 10)


def test_an_election_is_unclean_only_where_both_states_are_known() -> None:
    before = role(10, 1, 4, (1, 3), 7)
    for after, unclean in (
        (role(20, 2, 5, (2,), 8), True),
        (role(20, 3, 5, (3,), 8), False),
        (role(20, 2, 5, (2,), 9), None),
        (role(20, 2, 5, (2,), -1), None),
        (role(20, 2, 5, (2,), 8, found=True), None),
    ):
        assert elections(leaderships([before, after]), [])[-1].unclean is unclean


def test_a_time_without_a_leader_is_no_election_and_in_sync_changes_are_none() -> None:
    known = leaderships(
        [
            role(10, 1, 4, (1, 2), 7),
            role(15, 1, 4, (1,), 8),
            role(20, -1, 5, (1,), 9),
            role(30, 2, 6, (2,), 10),
        ]
    )
    found = elections(known, [])
    assert [(one.leadership.leader, one.leadership.leader_epoch) for one in found] == [
        (1, 4),
        (2, 6),
    ]
    assert found[1].unclean is True


def test_dropped_records_belong_to_the_election_before() -> None:
    cut = Step(Kind.CUT, (2, 5, (2,), -1), 25, 25, 100, 120, 150)
    told = Step(Kind.DIVERGED, "3", 35, 35, 110, 110, 130)
    cuts = dropped([told, told._replace(since_ms=36, until_ms=36), cut])
    assert cuts == [Dropped(25, None, 100, 150, 120), Dropped(35, 3, 110, 130, None)]
    known = leaderships([role(20, 2, 5, (2,), 8), role(30, 1, 6, (1,), 9)])
    assert [one.dropped for one in elections(known, cuts)] == [(cuts[0],), (cuts[1],)]


def test_all_leaderships_of_a_time_are_possible() -> None:
    known = leaderships(
        [
            role(10, 1, 4, (1, 2), 7),
            role(20, -1, 5, (1, 2), 8),
            role(30, 2, 6, (2,), 9),
            role(40, 2, 6, (2, 1), 10),
        ]
    )

    def between(
        since_ms: int | None, until_ms: int, from_epoch: int | None = None
    ) -> list[tuple[int, tuple[int, ...]]] | None:
        found = leaderships_between(known, since_ms, until_ms, from_epoch)
        return (
            None
            if found is None
            else [(leadership.leader_epoch, leadership.isr) for leadership in found]
        )

    assert between(12, 19) == [(4, (1, 2))]
    assert between(12, 35) == [(4, (1, 2)), (6, (2,))]
    assert between(22, 25) == [(5, (1, 2))], "nobody led"
    assert between(9, 35) is None
    assert between(None, 35) is None
    assert between(None, 45, 6) == [(6, (2,)), (6, (2, 1))]
    assert between(None, 35, 4) is None, "epoch 4 may have begun with another in-sync set"
    late = leaderships([role(10, 1, 4, (1, 2), 7), role(20, 2, 5, (2,), 9)])
    assert leaderships_between(late, None, 35, 5) is None, "epoch 5 may have begun with state 8"
    assert (
        leaderships_between(leaderships([role(10, 1, 4, (1, 2), 7, found=True)]), None, 35, 4)
        is None
    )


def test_in_sync_sets_are_not_told_where_the_next_one_shows_that_some_are_lost() -> None:
    first = role(10, 1, 4, (1, 2), 7)
    known = leaderships([first, role(90, 1, 4, (1,), 8)])
    assert [one.isr for one in leaderships_between(known, 20, 30, 4) or []] == [(1, 2)]
    known = leaderships([first, role(90, 1, 4, (1,), 9)])
    assert leaderships_between(known, 20, 30, 4) is None
