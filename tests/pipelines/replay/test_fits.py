"""How tables with keys order records that come late, and which cannot. Pure."""

from dataclasses import replace

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.replay.fits import check_columns, check_known, only_one, ordered
from ottla.pipelines.replay.note import Begun
from ottla.pipelines.target.keyed_table import KeyedTable

KEYED = KeyedTable(("k",), ("k", "n", "partition", "record_offset"))
PLACED = replace(KEYED, position=("partition", "record_offset"))


def test_offsets_order_records_where_nothing_else_does() -> None:
    found = ordered("t", PLACED, is_topic_replaced=False)
    assert found == replace(PLACED, order_by="record_offset")
    assert ordered("t", None, is_topic_replaced=True) is None
    for keyed in (
        replace(PLACED, history=True, order_by="timestamp", has_tombstones=True),
        replace(PLACED, order_by="at"),
        replace(PLACED, order_by="at", has_tombstones=True, deletes="mark"),
    ):
        assert ordered("t", keyed, is_topic_replaced=True) is keyed


@pytest.mark.parametrize(
    ("keyed", "is_replaced", "said"),
    [
        (replace(PLACED, has_tombstones=True), False, "could bring the row back"),
        (replace(PLACED, has_tombstones=True, order_by="at"), False, "could bring the row back"),
        (replace(PLACED, has_truncations=True), False, "is older than a truncation"),
        (PLACED, True, "its topic was created again"),
        (replace(PLACED, position=()), False, "do not say which record of a key is the last"),
        (replace(PLACED, is_shared=True), False, "do not say which record of a key is the last"),
    ],
)
def test_a_table_that_cannot_tell_an_older_record_is_refused(
    keyed: KeyedTable, is_replaced: bool, said: str
) -> None:
    with pytest.raises(PipelineError, match=said):
        ordered("t", keyed, is_topic_replaced=is_replaced)


def test_a_query_reads_one_topic() -> None:
    only_one("t", ["a"])
    with pytest.raises(PipelineError, match="t reads a, b, and rejected rows"):
        only_one("t", ["a", "b"])
    with pytest.raises(PipelineError, match="t reads no topic"):
        only_one("t", [])


def test_a_target_that_may_have_forgotten_a_replay_is_not_written_again() -> None:
    begun = Begun("id", 1, 7, 7, 1_000)
    forgets = "only its latest 3 snapshots are known"
    for held in (
        Held("the table t"),
        Held("the table t", since_ms=900, forgets=forgets),
        Held("the table t", batch=0, since_ms=2_000, forgets=forgets),
    ):
        check_known(begun, held, "./c")
    with pytest.raises(PipelineError, match="whether the table t has its 7 rows is not known"):
        check_known(begun, Held("the table t", since_ms=2_000, forgets=forgets), "./c")


def test_a_replay_whose_rows_were_taken_out_is_not_ended() -> None:
    held = Held("the table t", taken_out=(0,), taken_out_by="RESTORE TABLE")
    with pytest.raises(PipelineError, match="its 7 rows were taken out of the table t by RESTORE"):
        check_known(Begun("id", 1, 7, 7, 1_000), held, "./c")


def test_rows_that_lack_what_a_merge_needs_are_not_written() -> None:
    check_columns(None, [], "./c")
    check_columns(PLACED, ["partition", "record_offset", "N", "k"], "./c")
    marked = replace(PLACED, has_tombstones=True)
    with pytest.raises(PipelineError, match="computed lack the column tombstone"):
        check_columns(marked, ["k", "n", "partition", "record_offset"], "./c")
