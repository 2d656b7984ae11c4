"""What members of a streams group were told, and what of it cannot be."""

from __future__ import annotations

import pytest
from simulation.streams_ledger import Answered, Life, StreamsLedger, Task

TASK: Task = ("1", 0)
OTHER: Task = ("1", 1)


class Bench:
    """Broker 1 is the coordinator; from `moved_ms` on, broker 2."""

    def __init__(self) -> None:
        self.moved_ms = 1 << 60
        self.found: list[str] = []
        self.ledger = StreamsLedger(self.has_led, self.found.append)

    def has_led(self, broker: int, from_ms: int, to_ms: int) -> bool:
        return to_ms < self.moved_ms if broker == 1 else from_ms > self.moved_ms

    def beat(
        self, life: Life, epoch: int, at_ms: int, *told: Task, broker: int = 1, says: bool = True
    ) -> None:
        """`says`: the answer has tasks."""
        answer = Answered(broker, at_ms, at_ms + 10)
        self.ledger.went_on(life, epoch, answer)
        if says:
            self.ledger.told(life, told, answer)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def lives(bench: Bench) -> tuple[Life, Life]:
    return bench.ledger.joins(1, "a", "a"), bench.ledger.joins(2, "b", "b")


def test_a_group_that_does_as_it_should(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.beat(a, 2, 100, TASK, OTHER)
    bench.beat(b, 3, 200)
    bench.beat(a, 2, 300, OTHER)
    bench.ledger.gave_up(a, {TASK})
    bench.beat(a, 3, 400, says=False)
    bench.beat(b, 3, 500, TASK)
    bench.beat(a, 3, 600, says=False)
    assert bench.found == []
    assert (a.held, b.held, bench.ledger.told_count) == ({OTHER}, {TASK}, 4)


def test_two_members_in_one_epoch(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.beat(a, 2, 100, TASK)
    bench.ledger.gave_up(a, {TASK})
    bench.beat(b, 2, 200, TASK)
    assert bench.found == ["members a and b both have task 1_0 in epoch 2"]


def test_a_task_is_given_away_before_it_is_given_up(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.beat(a, 2, 100, TASK)
    bench.beat(b, 3, 200, TASK)
    bench.beat(a, 2, 205, says=False)
    assert bench.found == [], "the request was under way"
    bench.ledger.gave_up(a, {TASK})
    bench.beat(a, 3, 300, says=False)
    assert bench.found == [
        "task 1_0 was given to member 2 by 210 ms, while member 1 had it, which went on"
    ]


def test_a_member_that_is_none_any_more_had_it(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.beat(a, 2, 100, TASK)
    bench.beat(b, 3, 200, TASK)
    bench.ledger.ended(a)
    again = bench.ledger.joins(1, "a", "a")
    bench.beat(again, 4, 300)
    assert bench.found == []


def test_a_replaced_coordinator_may_say_anything(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.moved_ms = 150
    bench.beat(a, 4, 160, TASK, broker=2)
    bench.beat(b, 2, 170, TASK)
    bench.beat(a, 2, 200, says=False)
    assert bench.found == []


def test_an_epoch_goes_back(bench: Bench, lives: tuple[Life, Life]) -> None:
    bench.beat(lives[0], 4, 100)
    bench.ledger.ended(lives[0])
    again = bench.ledger.joins(1, "a", "a")
    bench.beat(again, 3, 200)
    assert bench.found == ["member 1 was in epoch 4, and is in 3 at 210 ms"]


def test_the_numbers_of_a_removed_group_begin_again(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, b = lives
    bench.beat(a, 4, 100, TASK)
    bench.ledger.removed(200)
    bench.beat(a, 4, 150, TASK)
    bench.beat(a, 2, 300, OTHER)
    bench.beat(b, 4, 400, TASK)
    bench.beat(b, 5, 500, says=False)
    assert bench.found == []


def test_a_commit_is_lost(bench: Bench, lives: tuple[Life, Life]) -> None:
    ledger, answer = bench.ledger, Answered(1, 100, 110)
    ledger.committed(TASK, 7, answer)
    ledger.fetched(lives[1], TASK, 7, ledger.known(TASK), answer)
    assert bench.found == []
    ledger.fetched(lives[1], TASK, 6, ledger.known(TASK), answer)
    assert bench.found == ["task 1_0 was committed to 7, and member 2 gets 6 at 110 ms"]
    ledger.unanswered(TASK, 5)
    ledger.fetched(lives[1], TASK, 5, ledger.known(TASK), answer)
    ledger.unsure.add("1")
    ledger.fetched(lives[1], TASK, 0, 7, answer)
    assert len(bench.found) == 1


def test_a_former_member_commits(bench: Bench, lives: tuple[Life, Life]) -> None:
    a, _ = lives
    bench.beat(a, 4, 100, TASK)
    removed, taken = Answered(1, 200, 210), Answered(1, 300, 310)
    bench.moved_ms = 250
    bench.ledger.former_succeeded(a, "a commit", removed, taken)
    assert bench.found == [], "the next coordinator may not know that it was removed"
    bench.moved_ms = 1 << 60
    bench.ledger.former_succeeded(a, "a commit", removed, taken)
    assert bench.found == [
        "a commit of member 1 was taken in epoch 4, after the member had been removed or had left"
    ]


def test_the_place_of_a_static_member_that_left(bench: Bench) -> None:
    first = bench.ledger.joins(1, "a", "static")
    bench.beat(first, 2, 100, TASK)
    bench.ledger.ended(first)
    bench.ledger.leaves_for_a_while(first)
    second = bench.ledger.joins(2, "b", "static")
    bench.beat(second, 2, 200, TASK)
    bench.beat(second, 2, 300, TASK)
    assert bench.found == []
    third = bench.ledger.joins(3, "c", "static")
    bench.beat(third, 2, 400, TASK)
    assert bench.found == ["members b and c both have task 1_0 in epoch 2"], "b had not left"


def test_a_member_that_was_paused_hears_late(bench: Bench) -> None:
    """Its answer is of the time before another process got its place."""
    paused = bench.ledger.joins(1, "a", "static")
    bench.beat(paused, 2, 100, TASK)
    answer = Answered(1, 200, 900)
    second = bench.ledger.joins(2, "b", "static")
    bench.beat(second, 3, 600, TASK)
    bench.ledger.went_on(paused, 2, answer)
    bench.ledger.told(paused, {TASK}, answer)
    bench.beat(second, 3, 1_000, says=False)
    assert bench.found == []
    bench.beat(paused, 2, 1_100, says=False)
    assert bench.found == [
        "task 1_0 was given to member 2 by 610 ms, while member 1 had it, which went on",
        "member 1 was in epoch 3, and is in 2 at 1110 ms",
    ]
