"""Numbers of batches in a folder of files; test_files.py has Spark's own lists."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.sinks.files.batches import STATE, FolderState, number_of

NEW = FolderState("id", "parquet", ("day",), {"type": "struct", "fields": []})
KNOWN = NEW.numbered("q", 5, 8)


def test_a_state_is_read_as_it_was_written() -> None:
    assert STATE.value(STATE.text(KNOWN), "place") == KNOWN
    for text in ("", "[]", '{"version": 1}'):
        with pytest.raises(PipelineError, match="place is damaged"):
            STATE.value(text, "place")
    with pytest.raises(PipelineError, match="another version of Ottla"):
        STATE.value(STATE.text(KNOWN).replace('"version": 1', '"version": 2'), "place")


def test_batches_of_a_query_follow_without_a_note() -> None:
    assert number_of(KNOWN, 7, "q", 5, once=True) == (8, False)
    assert number_of(KNOWN, 8, "q", 6, once=True) == (9, False)


def test_a_batch_that_is_there_is_skipped_or_written_again() -> None:
    for batch in (4, 5, 6):
        assert number_of(KNOWN, 9, "q", batch, once=True) == (None, False)
        assert number_of(KNOWN, 9, "q", batch, once=False) == (10, True)


def test_a_gap_and_another_query_need_a_note() -> None:
    assert number_of(NEW, -1, "q", 0, once=True) == (0, True)
    assert number_of(KNOWN, 8, "q", 9, once=True) == (9, True)
    assert number_of(KNOWN, 8, "next", 0, once=True) == (9, True)


def test_a_note_before_its_batch_gives_the_same_number_again() -> None:
    noted = KNOWN.numbered("q", 9, 9)  # killed before the batch
    assert number_of(noted, 8, "q", 9, once=True) == (9, False)
    assert number_of(noted, 9, "q", 9, once=True) == (None, False)  # killed after it


def test_the_ends_of_the_last_batches_are_noted() -> None:
    noted = KNOWN.ended(5, "a").ended(6, "b").ended(7, "c").ended(7, "d")
    assert noted.ends == {6: "b", 7: "d"}
    assert STATE.value(STATE.text(noted), "place") == noted
    assert noted.numbered("q", 9, 11).ended(9, "e").ends == {7: "d", 9: "e"}
    assert noted.numbered("next", 0, 11).ends == {}
    assert noted.ended(3, "a").ends[3] == "a", "the number of an older batch, written again"


def test_the_last_batch_of_a_query() -> None:
    assert KNOWN.last_batch("q", 10) == 7
    assert KNOWN.last_batch("q", 7) == 4  # the noted one is not there
    assert replace(KNOWN, batch=0).last_batch("q", 7) is None
    assert KNOWN.last_batch("other", 10) is None


def test_the_number_of_a_batch_that_is_there() -> None:
    assert KNOWN.number_in("q", 5, 8) == 8
    assert KNOWN.number_in("q", 7, 10) == 10
    assert KNOWN.number_in("q", 8, 10) is None
    assert KNOWN.number_in("q", 4, 10) is None
    assert KNOWN.number_in("other", 5, 10) is None


def test_a_replay_takes_a_number_and_the_query_goes_on_after_it() -> None:
    state = FolderState("f", "json", (), {}).numbered("q", 4, 2)
    noted = state.replayed("r", 3, 2)
    # Noted and not written, and written: the query's last batch is the same.
    assert noted.last_batch("q", 2) == noted.last_batch("q", 3) == 4
    assert number_of(noted, 3, "q", 5, once=True) == (4, False)
    # Not written: the query takes the number, and the replay has to take another one.
    assert number_of(noted, 2, "q", 5, once=True) == (3, True)
    assert noted.numbered("q", 5, 3).replay is None
    assert noted.numbered("other", 0, 4).replay == ("r", 3)
    assert STATE.value(STATE.text(noted), "") == noted
