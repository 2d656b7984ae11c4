"""What a pipeline keeps on the broker about itself."""

import json
from dataclasses import replace

import pytest
from tests.pipelines.progress.runs import RUN

from ottla.pipelines.destination import Destination
from ottla.pipelines.progress.group import MAX_METADATA_BYTES
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, State, read_offset_metadata
from ottla.pipelines.unknown_fields import UnknownFields

METADATA = OffsetMetadata("flights", "id-1", 7, "/lake/flights", 9, RUN)


def test_what_is_written_is_read_again() -> None:
    assert read_offset_metadata(METADATA.text()) == METADATA


def test_the_journey_finds_the_delivery_beside_the_run() -> None:
    document = json.loads(METADATA.text())
    assert document["ottla.pipeline"] == 1
    assert (document["query"], document["id"], document["batch"]) == ("flights", "id-1", 7)
    assert document["delta"] == {"table": "/lake/flights", "version": 9}


def test_before_the_first_batch_there_is_none() -> None:
    found = OffsetMetadata("flights", "id-1", run=RUN)
    assert "batch" not in json.loads(found.text())
    assert read_offset_metadata(found.text()) == found


def test_what_does_not_fit_is_left_out_the_least_needed_first() -> None:
    long = replace(RUN, failure="é" * 5_000)
    found = replace(METADATA, run=long)
    text = found.text()
    assert len(text.encode()) <= MAX_METADATA_BYTES
    read = read_offset_metadata(text)
    assert read is not None
    assert read.run is not None
    assert read.run.failure == "é" * 200
    assert read.version == 9

    wide = replace(METADATA, table="/x" * 3_000).text()
    read = read_offset_metadata(wide)
    assert read is not None
    assert (read.table, read.batch, read.run) == (None, 7, RUN)


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "{",
        "[]",
        "17",
        "[" * 100_000,
        '{"ottla.pipeline": 2, "query": "a", "id": "b"}',
        '{"ottla.pipeline": 1, "query": 7, "id": "b"}',
    ],
)
def test_metadata_of_others_is_no_pipelines(metadata: str) -> None:
    assert read_offset_metadata(metadata) is None


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "4711"},
        {"state": "asleep"},
        {"seen_ms": -1},
        {"every_s": True},
        {"rows": 1.5},
        {"failure": 7},
        {"host": None},
    ],
)
def test_a_run_with_wrong_types_is_not_believed(change: dict[str, object]) -> None:
    document = json.loads(METADATA.text())
    document["run"] |= change
    read = read_offset_metadata(json.dumps(document))
    assert read is not None
    assert read.run is None


def test_fields_of_later_versions_are_skipped() -> None:
    document = json.loads(METADATA.text())
    document["run"]["mood"] = "good"
    assert read_offset_metadata(json.dumps(document)) == METADATA


@pytest.mark.parametrize(
    ("state", "silent_ms", "stale"),
    [("running", 30_000, False), ("running", 30_001, True), ("stopped", 10**9, False)],
)
def test_a_run_that_misses_renewals_is_stale(state: State, silent_ms: int, stale: bool) -> None:
    run = replace(RUN, state=state)
    assert run.is_stale(run.seen_ms + silent_ms) is stale


def test_where_the_rows_go_is_there_for_every_kind_of_sink() -> None:
    to = Destination("postgresql", "public.flights in postgresql://db/lake", "upsert")
    found = OffsetMetadata("flights", "id-1", 7, to.place, None, RUN, to)
    document = json.loads(found.text())
    assert "delta" not in document
    assert document["sink"]["place"] == to.place
    assert read_offset_metadata(found.text()) == found

    files = OffsetMetadata(
        "flights", "id-1", 7, "/lake/files", 5, to=Destination("json", "/lake/files")
    )
    assert "delta" not in json.loads(files.text())
    assert read_offset_metadata(files.text()) == files


def test_which_records_a_batch_has_is_said() -> None:
    found = read_offset_metadata(replace(METADATA, reads_committed=True).text())
    assert found is not None
    assert found.reads_committed
    assert not METADATA.reads_committed


def test_unknown_fields_are_left_out_before_the_table() -> None:
    unknown = UnknownFields("drop", ("delay_min", "n.y"))
    found = read_offset_metadata(replace(METADATA, unknown=unknown).text())
    assert found is not None
    assert found.unknown == unknown
    long = UnknownFields("drop", tuple(f"{number:02}{'é' * 98}" for number in range(20)))
    found = read_offset_metadata(replace(METADATA, unknown=long).text())
    assert found is not None
    assert (found.unknown, found.table) == (None, "/lake/flights")
