"""Spark's progress events as values."""

import json
from typing import Any

import pytest

from ottla.pipelines.progress.events import (
    offsets_of,
    read_initial_offsets,
    read_offsets,
    read_progress,
)


def kafka(begin: dict[str, int] | None, end: dict[str, int]) -> dict[str, Any]:
    begins = None if begin is None else {"a": begin}
    return {"description": "KafkaV2[Subscribe[a]]", "startOffset": begins, "endOffset": {"a": end}}


def progress(**changes: object) -> str:
    said = {
        "id": "id-1",
        "name": "flights",
        "timestamp": "2026-11-22T04:00:00.250Z",
        "batchId": 7,
        "numInputRows": 500,
        "durationMs": {"addBatch": 300, "triggerExecution": 400},
        "observedMetrics": {
            "ottla.flights.0000": {"rejected": 2, "unknown": 4},
            "ottla.weather.0000": {"rejected": 1},
            "own": {"rejected": 100},
        },
        "sources": [kafka({"0": 5}, {"0": 505})],
        "sink": {"description": "ForeachBatchSink"},
    }
    return json.dumps(said | changes)


def test_a_batch_has_its_rows_rate_rejects_and_place() -> None:
    found = read_progress(progress())
    assert (found.query, found.query_id, found.batch, found.has_batch) == (
        "flights",
        "id-1",
        7,
        True,
    )
    assert found.offsets == {"a": {0: 505}}
    assert (found.rows, found.took_ms, found.rows_per_s) == (500, 400, 1250.0)
    assert (found.rejected, found.unknown) == (3, 4)
    assert found.began_ms == 1_795_320_000_250


@pytest.mark.parametrize(
    ("sources", "counted", "rows"),
    [
        ([kafka({"0": 5, "1": 7}, {"0": 10, "1": 11})], 36, 9),
        ([kafka(None, {"0": 5, "1": 4})], 36, 9),  # the first batch of a query
        ([kafka({"0": 5}, {"0": 10, "1": 4})], 36, 9),  # a partition was added
        ([kafka({"0": 5, "1": 7}, {"0": 11, "1": 11})], 36, 9),  # a marker has an offset, too
        ([kafka({"0": 5}, {"0": 14})], 9, 9),
        ([kafka({"0": 5}, {"0": 5})], 36, 36),
        ([kafka({"0": 5}, {"0": 14}), {"description": "Rate", "endOffset": 17}], 36, 36),
    ],
)
def test_records_that_a_batch_reads_several_times_are_counted_once(
    sources: list[Any], counted: int, rows: int
) -> None:
    metrics = {"ottla.a": {"rejected": 2 * counted // rows, "unknown": counted // rows}}
    found = read_progress(progress(sources=sources, numInputRows=counted, observedMetrics=metrics))
    assert found.rows == rows
    assert (found.rejected, found.unknown) == (2, 1)


def test_progress_without_a_batch_or_a_name() -> None:
    found = read_progress(progress(name=None, durationMs={"latestOffset": 3}, numInputRows=-1))
    assert (found.query, found.has_batch, found.rows, found.rows_per_s) == ("id-1", False, 0, None)


def test_offsets_of_kafka_sources_only() -> None:
    sources: list[dict[str, Any]] = [
        {"description": "KafkaV2[Subscribe[a]]", "endOffset": {"a": {"0": 5, "1": 7}}},
        {"description": "KafkaV2[Subscribe[b]]", "endOffset": {"b": {"0": 1}}},
        {"description": "KafkaV2[Subscribe[c]]", "endOffset": None},
        {"description": "RateStreamV2[...]", "endOffset": 17},
    ]
    assert offsets_of(sources) == {"a": {0: 5, 1: 7}, "b": {0: 1}}


def test_offsets_in_a_checkpoint() -> None:
    assert read_offsets('v1\n{"batchWatermarkMs":0}\n{"a":{"1":4}}\n-\n17\n') == {"a": {1: 4}}
    assert read_offsets("") == {}
    assert read_initial_offsets('\0v1\n{"a":{"0":3}}') == {"a": {0: 3}}
    assert read_initial_offsets("") == {}
    assert read_initial_offsets("\0v2\n{}") == {}
