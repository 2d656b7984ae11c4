"""Rejected rows as documents and as rows of a table."""

from ottla.cli.pipeline.rejects import MAX_SHOWN_CHARACTERS, cells, document
from ottla.pipelines.run.rejected_table import Reason, RejectedRow, RejectedRows

ROW = RejectedRow("value is not a bigint", "f", 1, 7, 0, None, b"\xff\x00", None)


def test_a_document_has_counts_reasons_and_raw_bytes() -> None:
    found = document("late", "./late", RejectedRows("t", 3, (Reason("r", 3, 0, 5),), (ROW,)))

    assert found == {
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


def test_no_table_is_no_row() -> None:
    found = document("late", "./late", None)

    assert (found["table"], found["rows"], found["reasons"], found["newest"]) == (None, 0, [], [])


def test_cells_are_safe_and_short() -> None:
    assert cells(ROW) == ["f-1@7", "1970-01-01T00:00:00.000Z", ROW.reason, "\\xff\\x00"]
    long = RejectedRow("r", "f", 1, 7, None, None, b"a" * 1_000, None)
    assert cells(long)[3] == "a" * MAX_SHOWN_CHARACTERS + "…"
    assert cells(long)[1] == "-"


def test_a_row_that_a_constraint_refused_is_shown_as_json() -> None:
    refused = RejectedRow("violates", None, None, None, None, None, None, '{"id": 7}')

    assert cells(refused) == ["-", "-", "violates", '{"id": 7}']
