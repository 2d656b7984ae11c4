"""Metadata of commits: a pipeline's is understood, anybody else's is left alone."""

import json
from typing import Any

import pytest

from ottla.timelines.delivery_metadata import DeliveredBatch, read_delivery
from ottla.timelines.rejected_offsets import RejectedOffsets, RejectedRange

TOLD = {
    "ottla.pipeline": 1,
    "query": "flights",
    "batch": 7,
    "delta": {"table": "/data/flights", "version": 9},
}


def read(metadata: str) -> DeliveredBatch:
    found = read_delivery(metadata)
    assert found is not None
    return found


def test_a_delivery_into_delta() -> None:
    assert read_delivery(json.dumps(TOLD)) == DeliveredBatch("flights", 7, "/data/flights", 9, None)
    assert read_delivery(json.dumps({**TOLD, "from": 2**40})) == DeliveredBatch(
        "flights", 7, "/data/flights", 9, 2**40
    )


def test_the_trailing_nul_of_confluent_kafka_is_ignored() -> None:
    assert read_delivery(json.dumps(TOLD) + "\0") == read_delivery(json.dumps(TOLD))


def test_a_delivery_that_rejected_some() -> None:
    said = {"ranges": [[5, 9, 0]], "reasons": ["why"], "kept": "flights_rejected"}
    rejected = RejectedOffsets((RejectedRange(5, 9, "why"),), "flights_rejected")
    assert read(json.dumps({**TOLD, "rejects": said})).rejected == rejected
    for wrong in (None, 5, {"ranges": 7}):
        assert read(json.dumps({**TOLD, "rejects": wrong})).rejected is None


@pytest.mark.parametrize(
    "delta", [None, {}, {"table": "t"}, {"version": 3}, {"table": "", "version": 1}, 5]
)
def test_a_delivery_into_something_else(delta: Any) -> None:
    assert read_delivery(json.dumps({**TOLD, "delta": delta})) == DeliveredBatch(
        "flights", 7, "", -1, None
    )


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "leader",
        "{",
        '"ottla.pipeline"',
        "[" * 100_000 + '"ottla.pipeline"',
        json.dumps({**TOLD, "ottla.pipeline": 2}),
        json.dumps({**TOLD, "query": 3}),
        json.dumps({**TOLD, "batch": -1}),
        json.dumps({**TOLD, "batch": True}),
        json.dumps({**TOLD, "batch": "7"}),
    ],
)
def test_metadata_that_is_not_a_delivery(metadata: Any) -> None:
    assert read_delivery(metadata) is None


def test_numbers_out_of_range_give_no_delivery_or_no_version() -> None:
    assert read_delivery(json.dumps({**TOLD, "batch": 2**31})) is None
    huge = {**TOLD, "delta": {"table": "t", "version": 2**31}}
    assert read_delivery(json.dumps(huge)) == DeliveredBatch("flights", 7, "", -1, None)
