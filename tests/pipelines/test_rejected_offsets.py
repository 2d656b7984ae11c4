"""What a commit says of the offsets that a batch rejected."""

import json
from typing import Any

from ottla.pipelines.progress.group import MAX_METADATA_BYTES
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
from ottla.pipelines.rejected_offsets import (
    MAX_RANGES,
    RejectedOffsets,
    RejectedRange,
    joined,
    untold,
)
from ottla.timelines.delivery_metadata import read_delivery
from ottla.timelines.rejected_offsets import RejectedOffsets as Read
from ottla.timelines.rejected_offsets import RejectedRange as ReadRange

WHY = "key is not a JSON object of the schema"
SAID = RejectedOffsets(
    (RejectedRange(5, 9, WHY), RejectedRange(20, 21, "another"), RejectedRange(30, 50)),
    "orders_rejected",
    (0, 50),
)
RUN = Run("9f2c41d0", "running", "etl-3", 4711, 1_000, 60_000, 10)


def read(said: RejectedOffsets, **more: Any) -> Read | None:
    """What the broker reads in the metadata of a commit."""
    text = OffsetMetadata("orders", "id-1", 7, "/lake/orders", 9, rejected=said, **more).text()
    assert len(text.encode()) <= MAX_METADATA_BYTES
    delivery = read_delivery(text)
    assert delivery is not None
    assert (delivery.batch, delivery.version) == (7, 9)
    return delivery.rejected


def test_the_broker_reads_what_the_pipeline_writes() -> None:
    ranges = (ReadRange(5, 9, WHY), ReadRange(20, 21, "another"), ReadRange(30, 50, None))
    assert read(SAID) == Read(ranges, "orders_rejected", (0, 50))
    assert read(RejectedOffsets((), again=(0, 50))) == Read((), "", (0, 50))
    assert "rejects" not in json.loads(OffsetMetadata("orders", "id-1", 7).text())


def test_of_too_many_ranges_the_first_and_last_offset_are_told() -> None:
    many = tuple(RejectedRange(at * 2, at * 2 + 1, WHY) for at in range(MAX_RANGES))
    found = read(RejectedOffsets(many, "orders_rejected"))
    assert found is not None
    assert len(found.ranges) == MAX_RANGES
    more = (*many, RejectedRange(1_000, 1_001, WHY))
    assert read(RejectedOffsets(more)) == Read((ReadRange(0, 1_001, None),))


def test_ranges_that_do_not_fit_into_a_commit_are_told_as_one() -> None:
    wide = tuple(RejectedRange(at * 2, at * 2 + 1, f"{at} {'é' * 190}") for at in range(MAX_RANGES))
    assert read(RejectedOffsets(wide, "r"), run=RUN) == Read((ReadRange(0, 127, None),), "r")


def test_a_batch_of_another_run_may_have_rejected_anything() -> None:
    before, ends = {"a": {0: 5, 1: 7}}, {"a": {0: 9, 1: 7, 2: 3}}
    assert untold(before, ends) == {
        ("a", 0): RejectedOffsets((RejectedRange(5, 9),)),
        ("a", 2): RejectedOffsets((RejectedRange(0, 3),)),
    }


def test_what_an_earlier_commit_could_not_say_is_said_with_the_next() -> None:
    earlier = {("a", 0): RejectedOffsets((RejectedRange(1, 2, WHY),), "kept", (0, 3))}
    later = {("a", 0): RejectedOffsets((RejectedRange(5, 6, WHY),)), ("a", 1): SAID}
    assert joined(earlier, later) == {
        ("a", 0): RejectedOffsets(
            (RejectedRange(1, 2, WHY), RejectedRange(5, 6, WHY)), "kept", (0, 3)
        ),
        ("a", 1): SAID,
    }
    assert joined({}, later) == later
