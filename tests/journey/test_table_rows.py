"""What became of the row of a key, from the messages of the key and their batches alone."""

from typing import Any

import pytest

from ottla.journey.table_rows import Batches, KeyHistory, KeyRecord, row_of
from ottla.timelines.destination import Destination

UPSERT = Destination("delta", "/t", "upsert", "offset", "remove", True)
BY_TIME = UPSERT._replace(order="timestamp")
HISTORY = Destination("delta", "/t", "history", "timestamp", "remove", True)


def history(*records: str, is_whole: bool = True, has_all: bool = True) -> KeyHistory:
    """Records such as "4": a value at offset 4; "4-": a tombstone; "4@9": stamped 9."""
    found = []
    for text in records:
        place, _, stamped = text.partition("@")
        offset = int(place.strip("-"))
        found.append(KeyRecord(offset, int(stamped or offset), place.endswith("-")))
    return KeyHistory(found, is_whole, has_all)


def batches(offset: int) -> Batches | None:
    """Ten offsets a batch; those from 90 on are not delivered. Versions are one behind."""
    number = offset // 10
    return None if offset >= 90 else Batches(number, number, number - 1, number - 1)


def said(
    to: Destination, of: KeyHistory, offset: int
) -> tuple[str | None, int | None, str | None, int | None]:
    row = row_of(to, of, offset, batches)
    return row["did"], row["of"], row["then"], row["by"] and row["by"]["offset"]


@pytest.mark.parametrize(
    ("records", "offset", "expected"),
    [
        (("4",), 4, ("inserted", None, "current", None)),
        (("4", "12"), 12, ("updated", 4, "current", None)),
        (("4", "12"), 4, ("inserted", None, "superseded", 12)),
        (("4", "12-"), 4, ("inserted", None, "deleted", 12)),
        (("4", "12-"), 12, ("deleted", 4, "gone", None)),
        (("12-",), 12, ("nothing", None, "gone", None)),
        (("4", "12-", "23"), 23, ("inserted", None, "current", None)),
        # In one batch the last one counts, and the others are never a row.
        (("4", "12", "15"), 12, ("replaced", None, "superseded", 15)),
        (("4", "12", "15"), 4, ("inserted", None, "superseded", 15)),
        (("4", "12", "15"), 15, ("updated", 4, "current", None)),
        (("4", "12", "15-"), 12, ("replaced", None, "deleted", 15)),
        # What is not delivered yet changes no row.
        (("4", "95"), 4, ("inserted", None, "current", None)),
    ],
)
def test_the_last_record_of_each_batch_is_merged(
    records: tuple[str, ...], offset: int, expected: tuple[Any, ...]
) -> None:
    assert said(UPSERT, history(*records), offset) == expected


def test_the_message_that_replaced_it_says_in_which_version() -> None:
    row = row_of(UPSERT, history("4", "12"), 4, batches)
    assert row["by"] == {
        "offset": 12,
        "first_batch": 1,
        "last_batch": 1,
        "first_version": 0,
        "last_version": 0,
    }


def test_by_timestamp_an_older_record_that_comes_later_changes_nothing() -> None:
    late = history("4@50", "12@40", "23@60")
    assert said(BY_TIME, late, 12) == ("older", 4, "gone", None)
    assert said(BY_TIME, late, 4) == ("inserted", None, "superseded", 23)
    assert said(BY_TIME, late, 23) == ("updated", 4, "current", None)


def test_a_row_that_is_removed_leaves_nothing_to_compare_with() -> None:
    late = history("4@30", "12-@50", "23@40")
    assert said(BY_TIME, late, 23) == ("inserted", None, "current", None)
    marked = BY_TIME._replace(deletes="mark")
    assert said(marked, late, 23) == ("older", 12, "gone", None)
    assert said(marked, late, 12) == ("deleted", 4, "gone", None)


def test_tombstones_that_are_skipped_change_nothing() -> None:
    skipping = UPSERT._replace(deletes="skip")
    assert said(skipping, history("4", "12-"), 4) == ("inserted", None, "current", None)
    assert said(skipping, history("4", "12-"), 12) == ("skipped", None, "gone", None)


def test_a_tombstone_without_a_row_is_a_marked_row_where_deletions_are_marked() -> None:
    marked = BY_TIME._replace(deletes="mark")
    assert said(marked, history("12-@50"), 12) == ("marked", None, "gone", None)
    assert said(marked, history("12-@50", "23@60"), 12) == ("marked", None, "superseded", 23)
    assert said(marked, history("4@30", "5-@50"), 5) == ("marked", None, "gone", None)
    assert said(HISTORY, history("12-@50"), 12) == ("opened", None, "gone", None)


def test_a_history_has_a_version_for_each_record() -> None:
    late = history("4@30", "12@50", "23@40", "34-@60")
    assert said(HISTORY, late, 4) == ("opened", None, "superseded", 23)
    assert said(HISTORY, late, 23) == ("opened", None, "superseded", 12)
    assert said(HISTORY, late, 12) == ("opened", None, "deleted", 34)
    assert said(HISTORY, late, 34) == ("closed", 12, "gone", None)


def test_what_is_not_known_is_null() -> None:
    unknown = (None, None, None, None)
    assert said(UPSERT._replace(order="column"), history("4"), 4) == unknown
    assert said(BY_TIME, history("4", is_whole=False), 4) == unknown
    assert said(UPSERT, history("4", is_whole=False), 4) == (None, None, "current", None)
    assert said(UPSERT, history("4", has_all=False), 4) == ("inserted", None, None, None)

    def one_of_two(_: int) -> Batches:
        return Batches(0, 3, 0, 3)

    row = row_of(UPSERT, history("4", "12"), 4, one_of_two)
    assert (row["did"], row["then"], row["by"]["offset"]) == (None, "superseded", 12)
    assert row_of(UPSERT, history("4", "12"), 12, one_of_two)["did"] is None
