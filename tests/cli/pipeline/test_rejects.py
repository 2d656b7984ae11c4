"""Rejected rows as documents and as rows of a table."""

import pytest

from ottla.cli.pipeline.rejects import MAX_SHOWN_CHARACTERS, newest_row, rejects_of
from ottla.cli.rows import document
from ottla.pipelines.rejects.table import Reason, RejectedRow, RejectedRows

ROW = RejectedRow("value is not a bigint", "f", 1, 7, 0, None, b"\xff\x00", None)


def test_a_document_has_counts_reasons_and_raw_bytes() -> None:
    found = rejects_of("late", "./late", RejectedRows("t", 3, (Reason("r", 3, 0, 5),), (ROW,)))

    assert document(found) == {
        "pipeline": "late",
        "target": "./late",
        "table": "t",
        "rows": 3,
        "reasons": [{"reason": "r", "rows": 3, "first_ms": 0, "last_ms": 5}],
        "newest": [
            {
                "topic": "f",
                "partition": 1,
                "offset": 7,
                "timestamp": 0,
                "reason": "value is not a bigint",
                "key": None,
                "value": "/wA=",
                "value_base64": True,
                "row": None,
            }
        ],
    }


def test_reasons_and_the_newest_rows_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    rejects_of("late", "./late", RejectedRows("t", 3, (Reason("r", 3, 0, 5),), (ROW,))).show()
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["late:", "3", "rows", "in", "t"],
        ["rows", "first", "last", "reason"],
        ["3", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.005Z", "r"],
        [],
        ["newest", "time", "reason", "value"],
        ["f-1@7", "1970-01-01T00:00:00.000Z", *ROW.reason.split(), "\\xff\\x00"],
    ]


def test_no_table_is_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = rejects_of("late", "./late", None)

    assert (found.table, found.rows, found.reasons, found.newest) == (None, 0, [], [])
    found.show()
    assert capsys.readouterr().out == "late: no row was rejected (./late).\n"


def test_values_are_safe_and_short() -> None:
    assert (newest_row(ROW).newest, newest_row(ROW).shown) == ("f-1@7", "\\xff\\x00")
    long = newest_row(RejectedRow("r", "f", 1, 7, None, None, b"a" * 1_000, None))
    assert long.shown == "a" * MAX_SHOWN_CHARACTERS + "…"
    assert long.timestamp is None


def test_a_row_that_a_constraint_refused_is_shown_as_json() -> None:
    refused = newest_row(RejectedRow("violates", None, None, None, None, None, None, '{"id": 7}'))

    assert (refused.newest, refused.reason, refused.shown) == ("-", "violates", '{"id": 7}')
