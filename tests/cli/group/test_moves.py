"""Which way a group's offsets are to go."""

import click
import pytest
from tests.client.answers import offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli import confirmation
from ottla.cli.failures import UsageFailed
from ottla.cli.group.moves import MovedGroup, confirm_moves
from ottla.cli.group.reset import checked
from ottla.client.admin.committed_offsets import Commit
from ottla.client.admin.offset_moves import Move, Target, consequence, move, plan, plan_to
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def log_of_ten() -> Client:
    """The partitions have offsets 5 to 14, the record of time 1 at offset 7."""
    first, end, at = (dict.fromkeys((T0, T1), offset) for offset in (5, 15, 7))
    return FakeCluster({LIST_OFFSETS: [offsets(first, end, at)]}).client()


@pytest.mark.parametrize(
    ("target", "before", "after", "note"),
    [
        (Target(earliest=True), 9, 5, ""),
        (Target(latest=True), None, 15, ""),
        (Target(offset=8), 9, 8, ""),
        (Target(offset=15), 9, 15, ""),
        (Target(offset=3), 9, 5, "3 is outside the log; moved to its first offset, 5."),
        (Target(offset=99), 9, 15, "99 is outside the log; moved to its end, 15."),
        (Target(at_ms=1), 9, 7, ""),
        (Target(shift=-2), 9, 7, ""),
        (Target(shift=100), 9, 15, "109 is outside the log; moved to its end, 15."),
        (Target(shift=1), None, 6, "no offset was committed; shifted from the first offset, 5."),
    ],
)
def test_plan_stays_within_the_log(
    target: Target, before: int | None, after: int, note: str
) -> None:
    committed = {} if before is None else {T0: Commit(before, "", -1)}
    assert plan(log_of_ten(), target, [T0], committed) == [Move("t", 0, before, after, note)]


def test_exactly_one_way_must_be_given() -> None:
    with pytest.raises(UsageFailed, match="no target given"):
        checked(Target(), "g")
    with pytest.raises(UsageFailed, match="--to-earliest and --shift-by exclude each other"):
        checked(Target(earliest=True, shift=0), "g")
    assert checked(Target(offset=0), "g") == Target(offset=0)
    assert checked(Target(at_ms=0), "g").at_ms == 0


def test_given_offsets_stay_within_the_log_too() -> None:
    moves = plan_to(log_of_ten(), {T1: 99, T0: 7}, {T0: Commit(9, "", -1)})
    assert [(each.partition, each.before, each.after) for each in moves] == [
        (0, 9, 7),
        (1, None, 15),
    ]
    assert moves[1].note == "99 is outside the log; moved to its end, 15."


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([(9, 9)], ""),
        ([(None, 5)], ""),
        ([(9, 8)], "1 record read again."),
        ([(9, 5), (14, 7)], "11 records read again."),
        ([(9, 14), (9, 5)], "4 records read again and 5 records skipped."),
    ],
)
def test_records_that_are_skipped_or_read_again_are_counted(
    capsys: pytest.CaptureFixture[str], steps: list[tuple[int | None, int]], said: str
) -> None:
    moves = [
        move(TopicPartition("t", at), before, after, 5, 15)
        for at, (before, after) in enumerate(steps)
    ]
    assert consequence(moves) == said
    MovedGroup("g", False, moves).show()
    assert said in capsys.readouterr().err


def test_it_asks_only_before_it_moves_topics_that_nobody_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []

    def answer(question: str, *, what_else: str) -> bool:
        asked.append((question, what_else))
        return False

    monkeypatch.setattr(confirmation, "ask", answer)
    one = [move(TopicPartition("a", 0), 9, 5, 5, 15), move(TopicPartition("b", 0), 5, 5, 5, 15)]
    confirm_moves("g", one)
    assert asked == []
    both = [move(TopicPartition("a", 0), 9, 5, 5, 15), move(TopicPartition("b", 0), 6, 5, 5, 15)]
    with pytest.raises(click.exceptions.Exit):
        confirm_moves("g", both)
    ((question, what_else),) = asked
    assert question == "Move g on 2 topics (a, b)? 5 records read again."
    assert what_else == "For one topic add --topic a, for all add --yes."
