"""What the broker knows of a pipeline, shown."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.session.states import RUN

from ottla.cli.pipeline.status import COLUMNS, remarks, status_document, status_row
from ottla.pipelines.file.read import read_text
from ottla.pipelines.progress.state import OffsetMetadata, Run
from ottla.pipelines.progress.status import Lag, Status

TEXT = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
[sink]
target = "./lake"
[delivery]
checkpoint = "./cp"
group = "{group}"
"""
(PIPELINE,) = read_text(
    Path("/flights.toml"), TEXT.format(bootstrap="localhost:9092", topic="t", group="g"), {}
).pipelines
NOW_MS = RUN.seen_ms + 5_000


def status(run: Run | None) -> Status:
    metadata = OffsetMetadata("flights", "id-1", 0, "/lake/flights", 0, run) if run else None
    return Status("g", {("t", 0): 5}, metadata, Lag(7, 2_300))


def test_a_run_is_a_row() -> None:
    document = status_document(PIPELINE, status(RUN), NOW_MS)
    row = dict(zip(COLUMNS, status_row(document, NOW_MS), strict=True))
    assert row == {
        "pipeline": "flights",
        "state": "running",
        "started": "1 min 4 s ago",
        "host": "etl-3",
        "batch": 0,
        "last batch": "6.0 s ago",
        "rows/s": 29_268,
        "rejected": 3,
        "unknown": None,
        "lag": 7,
        "behind": "2.3 s",
        "table": "/lake/flights",
        "version": 0,
    }
    assert remarks(document, NOW_MS) == []


def test_unknown_fields_are_counted_and_named() -> None:
    run = replace(RUN, unknown=7, unknown_fields="delay_min, n.y")
    document = status_document(PIPELINE, status(run), NOW_MS)
    assert status_row(document, NOW_MS)[COLUMNS.index("unknown")] == 7
    assert remarks(document, NOW_MS) == ["rows with fields that the schema lacks: delay_min, n.y"]


@pytest.mark.parametrize(
    ("run", "later_ms", "state", "remark"),
    [
        (None, 0, "unknown", "the group g has no state of a run"),
        (
            RUN,
            40_000,
            "silent",
            "last seen 40.0 s ago on etl-3 (pid 4711), although it reports every",
        ),
        (replace(RUN, state="failed", failure="The disk is full"), 0, "failed", "The disk is full"),
        (replace(RUN, state="stopped", by="anna@laptop"), 0, "stopped", "stopped 0 ms ago by anna"),
        (replace(RUN, state="finished"), 10**6, "finished", "finished 16 min 40 s ago"),
    ],
)
def test_what_a_row_has_no_room_for(run, later_ms: int, state: str, remark: str) -> None:
    now_ms = RUN.seen_ms + later_ms
    document = status_document(PIPELINE, status(run), now_ms)
    assert document["state"] == state
    (line,) = remarks(document, now_ms)
    assert line.startswith(remark)
