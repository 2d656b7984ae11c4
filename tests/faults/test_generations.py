"""Generations of a group: histories with and without anomalies."""

from __future__ import annotations

from faults.anomaly import Kind
from faults.generations import check
from faults.history import Committed, Emptied, Event, Synced


def kinds(*events: Event, has_offsets: bool = True) -> list[Kind]:
    """Of a group that has committed before, or of a new one."""
    before = [Committed(0, 0, 9, ((0, 1),), None, -1)] if has_offsets else []
    return [each.kind for each in check([*before, *events])]


def committed(sent_ms: int, generation: int, error: str | None = None) -> Committed:
    return Committed(sent_ms + 5, sent_ms, 1, ((0, 7),), error, generation)


def test_a_partition_moves_to_another_member_with_the_next_generation() -> None:
    assert kinds(Synced(1, 1, 4, (0, 1)), Synced(9, 2, 5, (0,)), Synced(9, 1, 5, (1,))) == []


def test_two_members_own_a_partition_in_one_generation() -> None:
    assert kinds(Synced(1, 1, 4, (0, 1)), Synced(2, 2, 4, (1,))) == [Kind.two_owners]


def test_a_member_gets_an_older_generation_than_before() -> None:
    assert kinds(Synced(1, 1, 4, ()), Synced(2, 1, 3, ())) == [Kind.stale_generation]


def test_a_replaced_coordinator_may_repeat_an_older_generation() -> None:
    """It answers from memory, and cannot give a partition to another member (seed 717)."""
    assert kinds(Synced(1, 1, 4, (0,)), Synced(2, 1, 3, (0,), by_deposed=True)) == []
    assert kinds(Synced(1, 1, 4, (0,)), Synced(2, 2, 4, (0,), by_deposed=True)) == [Kind.two_owners]


def test_a_group_without_members_and_offsets_begins_again() -> None:
    """It is removed (seed 1023)."""
    again = Synced(1, 1, 1, (0,)), Synced(900, 2, 1, (0,))
    assert kinds(*again, has_offsets=False) == []
    assert kinds(*again) == [Kind.two_owners]
    told = Synced(1, 1, 3, (0,)), Synced(900, 1, 1, (0,))
    assert kinds(*told, has_offsets=False) == []
    assert kinds(*told) == [Kind.stale_generation]


def test_a_group_that_began_again_keeps_its_generations_from_its_first_commit_on() -> None:
    again = Synced(1, 1, 1, (0,)), Synced(900, 2, 1, (0,)), committed(901, 1)
    assert kinds(*again, Synced(910, 3, 1, (0,)), has_offsets=False) == [Kind.two_owners]


def test_a_paused_consumer_hears_of_a_removed_group_after_the_first_commit() -> None:
    """Simulation seed 167257."""
    again = Synced(900, 1, 1, (0,), sent_ms=899), committed(901, 1)
    late = Synced(910, 2, 1, (0,), sent_ms=830)
    assert kinds(*again, late, Synced(920, 1, 2, (0,)), has_offsets=False) == []
    asked_later = Synced(910, 2, 1, (0,), sent_ms=907)
    assert kinds(*again, asked_later, has_offsets=False) == [Kind.two_owners]


def test_a_commit_of_a_removed_group_is_not_of_a_former_generation() -> None:
    again = Synced(1, 1, 3, (0,)), Synced(900, 1, 1, (0,)), committed(901, 1)
    assert kinds(*again, has_offsets=False) == []


def test_a_removed_group_begins_again_without_the_members_of_its_highest_generation() -> None:
    """Simulation seed 110784: consumer 1 never was in generation 2."""
    again = (
        Synced(1, 1, 1, (0,)), Synced(100, 2, 2, (0,)), Synced(900, 1, 1, (0,)), committed(901, 1)
    )  # fmt: skip
    assert kinds(*again, has_offsets=False) == []
    assert kinds(*again) == [Kind.stale_generation]


def test_another_member_may_learn_its_generation_late() -> None:
    assert kinds(Synced(1, 1, 4, ()), Synced(2, 2, 3, ())) == []


def test_a_commit_of_a_former_generation_is_found() -> None:
    known = Synced(10, 2, 5, (0,))
    assert kinds(known, committed(11, 4)) == [Kind.stale_generation]
    assert kinds(known, committed(11, 4, "illegal_generation")) == []
    assert kinds(known, committed(11, 5)) == []


def test_a_commit_that_was_sent_before_the_next_generation_was_known_may_succeed() -> None:
    assert kinds(Synced(10, 2, 5, (0,)), committed(10, 4)) == []


def test_a_commit_without_a_generation_is_not_checked() -> None:
    assert kinds(Synced(10, 2, 5, (0,)), committed(11, -1)) == []


def test_an_empty_group_that_is_joined_in_the_other_protocol_begins_again() -> None:
    """Simulation seed 173 of `--conversions`."""
    again = Synced(1, 1, 2, (0,), sent_ms=0), Emptied(500), Synced(900, 3, 2, (0,), sent_ms=890)
    assert kinds(*again) == []
    late = Synced(905, 1, 3, (0,), sent_ms=480), Synced(906, 1, 2, (0,), sent_ms=481)
    assert kinds(*again, *late) == []
    assert kinds(*again, Synced(910, 1, 2, (0,), sent_ms=907)) == [Kind.two_owners]
    assert kinds(*again[:2], Synced(900, 3, 2, (0,), sent_ms=480)) == [Kind.two_owners]
    told = Synced(1, 1, 4, (0,), sent_ms=0), Emptied(500), Synced(900, 1, 1, (0,), sent_ms=890)
    assert kinds(*told, committed(950, 1)) == []
    assert kinds(*told, committed(950, 1), Synced(990, 1, 0, (0,), sent_ms=980)) == [
        Kind.stale_generation
    ]


def test_an_answer_may_be_of_a_life_between_two_in_which_the_group_was_empty() -> None:
    """Simulation seed 399 of `--conversions`."""
    lives = (
        Synced(1, 1, 2, (0,), sent_ms=0),
        *(Emptied(500), Emptied(800)),
        Synced(900, 3, 2, (0,), sent_ms=600),
        Synced(950, 3, 1, (0,), sent_ms=940),
    )
    assert kinds(*lives) == []
    assert kinds(*lives, Synced(960, 2, 1, (0,), sent_ms=955)) == [Kind.two_owners]
