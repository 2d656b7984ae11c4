"""The state of a pipeline, from what the pipeline itself writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ottla.journey.pipeline_state import SILENT, SOME, UNKNOWN, group_of, pipeline_state, read_run
from ottla.pipelines.destination import Destination
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
from ottla.pipelines.progress.requests import StopRequest
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.pipelines.unknown_fields import UnknownFields

RUN = Run(
    id="9f2c41d0",
    state="running",
    host="etl-3",
    pid=4711,
    since_ms=1_000,
    seen_ms=100_000,
    every_s=10,
    batch_at_ms=99_000,
    batch_ms=410,
    rows=12_000,
    rows_per_s=29_268.3,
    rejected=3,
    rejected_reason="key is empty",
)
LAKE = Destination("delta", "/lake/flights", rows="upsert")
COMMIT = OffsetMetadata("flights", "id-1", 7, "/lake/flights", 9, to=LAKE)


def test_what_a_pipeline_writes_is_read() -> None:
    rejected = RejectedOffsets(
        (RejectedRange(1, 4, "key is empty"), RejectedRange(4, 9, None)), "flights_rejected"
    )
    unknown = UnknownFields("drop", ("delay_min",))
    found = pipeline_state(
        "g",
        [
            replace(COMMIT, run=RUN).text(),
            replace(COMMIT, rejected=rejected, unknown=unknown).text(),
            replace(COMMIT, batch=6, version=8).text(),
            "another client's",
        ],
    )
    assert found is not None
    assert found.group == "g"
    assert (found.query, found.batch, found.version) == ("flights", 7, 9)
    assert found.to is not None
    assert (found.to.kind, found.to.place, found.to.rows) == ("delta", "/lake/flights", "upsert")
    assert found.run is not None
    assert found.run._asdict() == {name: getattr(RUN, name) for name in found.run._fields}
    assert found.rejected == [(SOME, 5), ("key is empty", 3)]
    assert found.kept == "flights_rejected"
    assert found.unknown is not None
    assert found.unknown.fields == ("delay_min",)


def test_a_run_that_is_silent_says_nothing_of_its_end() -> None:
    state = pipeline_state("g", [replace(COMMIT, run=RUN).text()])
    assert state is not None
    assert state.state_at(130_000) == "running"
    assert state.state_at(130_001) == SILENT
    ended = pipeline_state("g", [replace(COMMIT, run=replace(RUN, state="stopped")).text()])
    assert ended is not None
    assert ended.state_at(10**9) == "stopped"
    none = pipeline_state("g", [COMMIT.text()])
    assert none is not None
    assert none.state_at(0) == UNKNOWN


def test_a_run_without_a_query_is_in_the_companion() -> None:
    note = OffsetMetadata("flights", "", run=replace(RUN, state="starting")).text()
    assert group_of("g.run", [note]) == "g"
    assert group_of("g", [note]) is None
    found = pipeline_state("g", [], [note])
    assert found is not None
    assert (found.query, found.batch, found.state_at(100_000)) == ("flights", None, "starting")
    later = OffsetMetadata("flights", "", run=replace(RUN, id="b", seen_ms=200_000)).text()
    both = pipeline_state("g", [replace(COMMIT, run=RUN).text()], [later])
    assert both is not None
    assert both.run is not None
    assert both.run.id == "b"


def test_groups_of_others_are_no_pipelines() -> None:
    assert group_of("g", [COMMIT.text()]) == "g"
    assert group_of("g", ["", "{", '{"ottla.pipeline": 2}', "ottla.pipeline"]) is None
    assert group_of("g.stop", [StopRequest("9f2c41d0", "anna", 1).metadata()]) is None
    assert pipeline_state("g", ["x"], ["y"]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "1"},
        {"pid": True},
        {"pid": -1},
        {"rows": 2**63},
        {"state": "dancing"},
        {"seen_ms": None},
        {"host": 5},
        {"rows_per_s": "fast"},
        {"rows_per_s": float("nan")},
    ],
)
def test_a_run_with_wrong_types_is_not_believed(change: dict[str, Any]) -> None:
    said = {name: getattr(RUN, name) for name in RUN.__dataclass_fields__} | change
    assert read_run(said) is None


def test_fields_of_later_versions_are_skipped() -> None:
    said = {name: getattr(RUN, name) for name in RUN.__dataclass_fields__}
    assert read_run({**said, "later": [1]}) == read_run(said) is not None
    assert read_run(None) is None
