"""How a running pipeline is shown."""

from dataclasses import replace

import pytest
from tests.pipelines.program.states import SNAPSHOT
from tests.pipelines.progress.runs import RUN

from ottla.cli.pipeline.snapshot import (
    COLUMNS,
    format_rate,
    snapshot_document,
    snapshot_line,
    snapshot_row,
)
from ottla.pipelines.program.snapshot import Snapshot


def test_a_row_has_a_cell_for_each_column() -> None:
    assert dict(zip(COLUMNS, snapshot_row(SNAPSHOT), strict=True)) == {
        "pipeline": "flights",
        "state": "running",
        "rows/s": "29,268",
        "rows": "12,000",
        "lag": "1,200",
        "behind": "2.3 s",
        "batch": "7",
        "took": "410 ms",
        "rejected": "3",
        "version": "9",
    }
    assert snapshot_row(Snapshot("flights")) == ["flights", "starting", *["-"] * 8]


def test_a_line_for_a_log() -> None:
    assert snapshot_line(SNAPSHOT) == (
        "flights: running. batch 7 in 410 ms (29,268 rows/s); 12,000 rows, 3 rejected; "
        "lag 1,200 messages (2.3 s); Delta version 9"
    )
    assert snapshot_line(Snapshot("flights")) == "flights: starting"
    failed = replace(RUN, state="failed", failure="The disk is full")
    assert snapshot_line(Snapshot("flights", failed)) == "flights: failed. The disk is full"
    assert snapshot_line(Snapshot("flights", failure="No table")) == "flights: failed. No table"


def test_a_document_for_programs() -> None:
    document = snapshot_document(SNAPSHOT, 70_000)
    assert document == {
        "at_ms": 70_000,
        "pipeline": "flights",
        "state": "running",
        "batch": 7,
        "batch_ms": 410,
        "rows": 12_000,
        "rows_per_s": 29_268.3,
        "rejected": 3,
        "rejected_reason": None,
        "dropped": None,
        "truncated": None,
        "unknown": None,
        "unknown_fields": None,
        "lag_messages": 1_200,
        "lag_ms": 2_300,
        "table": "/lake/flights",
        "version": 9,
        "failure": None,
    }
    assert snapshot_document(Snapshot("flights"), 1)["state"] == "starting"


def test_the_most_frequent_reason_of_the_rejected_rows() -> None:
    run = replace(RUN, state="finished", rejected_reason="value is not a bigint")
    snapshot = replace(SNAPSHOT, run=run)
    assert "12,000 rows, 3 rejected (most of them: value is not a bigint)" in snapshot_line(
        snapshot
    )
    assert snapshot_document(snapshot, 0)["rejected_reason"] == "value is not a bigint"


def test_rows_with_unknown_fields() -> None:
    snapshot = replace(SNAPSHOT, run=replace(RUN, unknown=7_000, unknown_fields="delay_min"))
    assert "3 rejected; 7,000 with unknown fields (delay_min)" in snapshot_line(snapshot)


def test_dropped_rows_are_counted() -> None:
    snapshot = replace(SNAPSHOT, run=replace(RUN, dropped=7_000))
    assert "3 rejected; 7,000 dropped, which do not fulfil expect" in snapshot_line(snapshot)


def test_rows_older_than_a_truncation_are_counted() -> None:
    snapshot = replace(SNAPSHOT, run=replace(RUN, truncated=7_000))
    assert "3 rejected; 7,000 left out, older than a truncation" in snapshot_line(snapshot)


@pytest.mark.parametrize(
    ("rows_per_s", "said"),
    [(None, "-"), (0.0, "0"), (0.04, "0.0"), (0.5, "0.5"), (9.96, "10.0"), (1_234.5, "1,234")],
)
def test_a_small_rate_has_a_digit_more(rows_per_s: float | None, said: str) -> None:
    assert format_rate(rows_per_s) == said
