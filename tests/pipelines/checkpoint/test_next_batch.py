"""The offsets in the newest commit that is still in the target are the start of the next batch."""

from dataclasses import replace

import pytest

from ottla.pipelines.checkpoint.next_batch import (
    Held,
    Planned,
    Refuse,
    Skip,
    Write,
    decide,
    digest,
    hole,
    notice,
)

FIVE = {"flights": {0: 5, 1: 7}}
NINE = {"flights": {0: 9, 1: 7}}
AGAIN = Planned("cp", 3, FIVE, NINE)
"""Planned and not done."""
NEW = Planned("cp", 3, FIVE)
TABLE = Held("the table t", is_complete=True, taken_out_by="RESTORE TABLE")


def refusal(planned: Planned, held: Held) -> str:
    answer = decide(planned, held)
    assert isinstance(answer, Refuse), answer
    assert "\n" not in answer.sentence
    return answer.sentence


@pytest.mark.parametrize("planned", [AGAIN, NEW])
def test_a_batch_follows_the_newest_one_that_the_target_has(planned: Planned) -> None:
    held = replace(TABLE, batch=2, ends=FIVE)
    assert decide(planned, held) == Write()
    assert decide(planned, replace(held, ends=None)) == Write(), "the target does not keep offsets"
    assert decide(replace(planned, begins=None), held) == Write()
    assert decide(replace(planned, promised=2), held) == Write()
    assert "up to offset 9 in partition 0" in refusal(planned, replace(held, ends=NINE))


def test_a_batch_that_the_target_has_is_skipped() -> None:
    held = replace(TABLE, batch=3, ends=NINE)
    for planned in (AGAIN, replace(AGAIN, begins=None), replace(AGAIN, is_skipped=True)):
        assert decide(planned, held) == Skip()
        assert decide(planned, replace(held, ends=None)) == Skip()
    assert refusal(AGAIN, replace(held, ends=FIVE)) == (
        "The checkpoint cp was set back, for example by a backup that was restored, or is a copy: "
        "the table t has batch 3 of this query up to offset 5 in partition 0, offset 7 in "
        "partition 1 of topic 'flights', and the checkpoint has it up to offset 9 in partition 0, "
        "offset 7 in partition 1. To continue would lose rows or write them twice. Use the newest "
        "checkpoint, or a new one"
    )


def test_a_partition_that_only_one_of_both_has_is_a_difference() -> None:
    held = replace(TABLE, batch=3, ends={"flights": {0: 9}})
    assert "up to offset 9 in partition 0 of topic 'flights'" in refusal(AGAIN, held)


def test_offsets_of_other_sources_are_none_of_the_targets() -> None:
    other = replace(AGAIN, ends={"flights": {0: 9, 1: 7}, "shards": {0: 1}})
    assert decide(other, replace(TABLE, batch=3, ends=NINE)) == Skip()


def test_a_target_with_later_batches_refuses_an_older_checkpoint() -> None:
    assert "has batch 4 of this query, and the checkpoint has batches up to 3" in refusal(
        AGAIN, replace(TABLE, batch=4)
    )
    assert "has batch 3 of this query, and the checkpoint has batches up to 2" in refusal(
        NEW, replace(TABLE, batch=3)
    )
    first = Planned("cp", 0)
    assert "and the checkpoint has no batch" in refusal(first, replace(TABLE, batch=0))
    assert decide(first, TABLE) == Write()


def test_a_target_without_promised_batches_was_set_back() -> None:
    promised = replace(NEW, promised=2)
    assert refusal(promised, replace(TABLE, batch=1, kept_in="the database")) == (
        "The table t has the batches up to 1 of this query, and the checkpoint cp those up to 2: "
        "the database was set back, for example by a backup that was restored. Use a new "
        "checkpoint with topic(..., starting='table') to continue where the table ends"
    )
    assert "has delivered batches that the table t does not hold" in refusal(promised, TABLE)
    for held in (replace(TABLE, is_complete=False), Held("topic u", 1)):
        assert decide(promised, held) == Write(), "it may have forgotten its newest batches"
    assert decide(NEW, replace(TABLE, batch=1)) == Write(), "nothing is promised"


def test_a_target_that_forgot_its_commits_takes_no_batch_again_that_it_may_have() -> None:
    held = Held("the table t", since_ms=1_000, forgets="only its latest 2 snapshots are known")
    cut_off = replace(AGAIN, begun_ms=999)
    assert refusal(cut_off, held) == (
        "Batch 3 of the checkpoint cp was cut off, and whether the table t has it is not known: "
        "only its latest 2 snapshots are known. Start once with delivery='at-least-once', which "
        "may write its rows twice, or use a new checkpoint with explicit offsets: topic(..., "
        "starting={0: 4711})"
    )
    assert "the table t shows none of this query: only its latest 2" in refusal(
        replace(NEW, promised=2), replace(held, is_complete=True)
    )
    for planned in (NEW, AGAIN, replace(cut_off, begun_ms=1_000)):
        assert decide(planned, held) == Write(), "nothing of it is there"
    assert decide(cut_off, replace(held, since_ms=None)) == Write(), "it knows all its commits"
    assert decide(cut_off, replace(held, batch=3, ends=NINE)) == Skip()


def test_batches_that_a_restore_took_out_are_named() -> None:
    restored = replace(TABLE, batch=2, ends=FIVE, taken_out=(4, 3))
    assert refusal(AGAIN, restored).startswith(
        "The table t was set back by RESTORE TABLE and no longer has the batches 3 to 4 of this "
    )
    assert "has batch 3 of this" in refusal(AGAIN, replace(restored, taken_out=(3,)))


def test_a_target_that_skips_a_batch_must_have_it() -> None:
    skipped = Planned("cp", 3, ends=NINE, is_skipped=True)
    assert decide(skipped, Held("the table t")) == Skip(), "its history is gone"
    assert "the batches up to 2" in refusal(skipped, replace(TABLE, batch=2, ends=FIVE))


def test_digests_stand_for_offsets() -> None:
    planned = replace(AGAIN, begins=digest(FIVE), ends=digest(NINE))
    assert decide(planned, Held("topic u", 3, digest(NINE))) == Skip()
    assert decide(planned, Held("topic u", 3, "")) == Skip(), "a mark of an earlier version"
    assert decide(planned, Held("topic u", 2, digest(FIVE))) == Write()
    assert decide(AGAIN, Held("topic u", 3, digest(NINE))) == Skip()
    for one in (planned, AGAIN):
        assert "another batch 3" in refusal(one, Held("topic u", 3, digest(FIVE)))
    assert digest({"a": {1: 2, 0: 3}, "b": {}}) == digest({"b": {}, "a": {0: 3, 1: 2}})


def test_a_query_that_was_continued_does_not_go_on() -> None:
    assert refusal(AGAIN, replace(TABLE, batch=2, ends=FIVE, continued_by="query-9")) == (
        "The table t was continued by the query query-9 with another checkpoint, where the query "
        "of the checkpoint cp ended: to go on would write rows twice. Use that checkpoint, or a "
        "new one with topic(..., starting='table')"
    )


def test_a_table_with_a_hole_is_not_continued() -> None:
    assert hole(replace(TABLE, batch=2, taken_out=(3, 4))) is None, "they are read again"
    assert hole(TABLE) is None
    said = hole(replace(TABLE, batch=6, taken_out=(4, 5))) or ""
    assert "took out the batches 4 to 5 of a query, and has its batch 6 after that" in said


def test_a_target_of_which_only_the_number_of_the_last_batch_is_known() -> None:
    held = replace(TABLE, batch=2, forgets="only its latest 9 commits are known")
    assert decide(NEW, held) == Write()
    said = notice(NEW, held)
    assert said is not None
    assert said.startswith("The table t has batch 2 of this query, as the checkpoint cp, but no ")
    assert notice(NEW, replace(held, ends=FIVE)) is None
    assert notice(NEW, replace(held, forgets="")) is None
    assert notice(NEW, replace(TABLE)) is None
    unsure = replace(held, unsure="some may have continued it")
    for planned in (NEW, AGAIN):
        said = refusal(planned, unsure)
        assert "9 commits are known, and some may have continued it" in said
        assert said == hole(unsure)
    assert "batch 2 of this query" in refusal(replace(NEW, number=2), unsure)


def test_what_came_before_a_batch_that_was_cut_off_is_not_known() -> None:
    held = replace(TABLE, batch=3, ends=NINE, forgets="only its latest 9 commits are known")
    held = replace(held, unsure_before="none of them is of query-9")
    said = refusal(AGAIN, held)
    assert said.startswith("A run was cut off after it had written batch 3 to the table t. Whether")
    assert "9 commits are known, and none of them is of query-9. If it has, rows may be" in said
    assert decide(replace(NEW, number=4, begins=NINE), held) == Write(), "its run has compared"


def test_a_batch_in_two_commits() -> None:
    held = replace(TABLE, batch=3, ends=NINE, is_twice=True)
    said = "The table t has batch 3 of this query in two commits: two runs wrote it, and rows may"
    for planned in (AGAIN, replace(NEW, number=4, begins=NINE)):
        assert refusal(planned, held).startswith(said)
