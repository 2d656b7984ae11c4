"""What the broker knows of a pipeline, shown."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.progress.runs import RUN

from ottla.cli.pipeline.status import remarks, status_of
from ottla.cli.rows import document, emit
from ottla.pipelines.file.read import read_text
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
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


def test_a_run_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    found = status_of(PIPELINE, status(RUN), NOW_MS)
    emit([found], as_json=False)
    head, line = capsys.readouterr().out.splitlines()
    assert re.split(" {2,}", head) == [
        *("pipeline", "state", "started", "host", "batch", "last batch", "rows/s", "rejected"),
        *("lag", "behind", "table", "version"),
    ]
    assert re.split(" {2,}", line) == [
        *("flights", "running", "1 min 4 s ago", "etl-3", "0", "6.0 s ago", "29268", "3"),
        *("7", "2.3 s", "/lake/flights", "0"),
    ]
    assert remarks(found, NOW_MS) == []


def test_the_document_has_every_field() -> None:
    found = document(status_of(PIPELINE, status(RUN), NOW_MS))
    assert list(found) == [
        *("pipeline", "group", "state", "run", "host", "pid", "since_ms", "seen_ms", "every_s"),
        *("batch", "batch_at_ms", "batch_ms", "rows", "rows_per_s", "rejected", "unknown"),
        *("dropped", "truncated", "rejected_reason", "unknown_fields", "failure", "by", "table"),
        *("version", "lag_messages", "lag_ms"),
    ]
    assert (found["run"], found["batch"], found["lag_ms"]) == (RUN.id, 0, 2_300)
    never = document(status_of(PIPELINE, status(None), NOW_MS))
    assert {never[name] for name in ("run", "host", "batch", "rows", "table")} == {None}


def test_unknown_fields_are_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    run = replace(RUN, unknown=7, unknown_fields="delay_min, n.y")
    found = status_of(PIPELINE, status(run), NOW_MS)
    emit([found], as_json=False)
    assert "unknown" in capsys.readouterr().out
    assert remarks(found, NOW_MS) == ["rows with fields that the schema lacks: delay_min, n.y"]


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
def test_what_a_row_has_no_room_for(
    run: Run | None, later_ms: int, state: str, remark: str
) -> None:
    now_ms = RUN.seen_ms + later_ms
    found = status_of(PIPELINE, status(run), now_ms)
    assert found.state == state
    (line,) = remarks(found, now_ms)
    assert line.startswith(remark)
