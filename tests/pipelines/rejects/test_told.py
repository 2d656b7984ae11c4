"""Where the rejected rows of a batch lie."""

from typing import Any

import pytest

from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.pipelines.rejects import told as told_rejects
from ottla.pipelines.rejects.pending import Part
from ottla.pipelines.rejects.told import (
    Seen,
    anywhere,
    by_partition,
    ranges_of,
    seen_in,
    somewhere,
    told,
)
from ottla.pipelines.source.source import Source

WHY = "key is not a JSON object of the schema"
PART = Part("a", "id", {}, {0: 128, 1: -2}, {0: 192, 1: 64}, 3)


def test_neighbours_with_one_reason_are_a_range() -> None:
    records = [(7, "value.n is not a bigint: 'x'"), (5, WHY), (4, WHY), (6, WHY), (9, WHY)]
    assert ranges_of([*records, (8, "value.n is not a bigint: 'y'")]) == (
        RejectedRange(4, 7, WHY),
        RejectedRange(7, 9, "value.n is not a bigint"),
        RejectedRange(9, 10, WHY),
    )


def test_each_partition_has_its_ranges() -> None:
    records = [("b", 1, 4, WHY), ("a", 0, 1, WHY), ("b", 0, 4, WHY), ("a", 0, 2, WHY)]
    assert by_partition(records) == {
        ("a", 0): (RejectedRange(1, 3, WHY),),
        ("b", 0): (RejectedRange(4, 5, WHY),),
        ("b", 1): (RejectedRange(4, 5, WHY),),
    }


def test_of_rows_that_wait_it_is_told_where_they_lie() -> None:
    assert somewhere([PART, Part("a", "id", {}, {0: 256}, {0: 320}, 1)], "a_rejected") == {
        ("a", 0): RejectedOffsets((RejectedRange(128, 192), RejectedRange(256, 320)), "a_rejected"),
        ("a", 1): RejectedOffsets((RejectedRange(0, 64),), "a_rejected"),
    }


def test_what_was_told_of_rows_that_waited_no_longer_counts() -> None:
    ranges: dict[tuple[str, int], tuple[RejectedRange, ...]] = {
        ("a", 0): (RejectedRange(130, 131, WHY),),
        ("b", 0): (RejectedRange(1, 2, WHY),),
    }
    assert told(ranges, "a_rejected", [PART]) == {
        ("a", 0): RejectedOffsets((RejectedRange(130, 131, WHY),), "a_rejected", (128, 192)),
        ("a", 1): RejectedOffsets((), "a_rejected", (0, 64)),
        ("b", 0): RejectedOffsets((RejectedRange(1, 2, WHY),), "a_rejected"),
    }


def test_rows_without_a_place_may_be_anywhere_in_the_batch() -> None:
    source = Source("a", KafkaSettings("localhost:9092"), {})
    spans = {"a": ({0: 5, 1: -2, 2: 7}, {0: 9, 1: 3, 2: 7})}
    assert anywhere([source], spans) == {
        ("a", 0): (RejectedRange(5, 9),),
        ("a", 1): (RejectedRange(0, 3),),
    }


ROWS = [
    *[("a", 0, offset, WHY) for offset in range(10, 20)],
    ("a", 0, 30, "value.n is not a bigint: 'x'"),
    ("a", 0, 32, "value.n is not a bigint: 'y'"),
    ("b", 1, 7, WHY),
]
COLUMNS = "topic string, partition int, offset bigint, reason string"


@pytest.mark.spark
def test_the_ranges_of_few_rows(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    ranges = {
        ("a", 0): (
            RejectedRange(10, 20, WHY),
            RejectedRange(30, 31, "value.n is not a bigint"),
            RejectedRange(32, 33, "value.n is not a bigint"),
        ),
        ("b", 1): (RejectedRange(7, 8, WHY),),
    }
    assert seen_in(frame, len(ROWS) + 5, None) == Seen(len(ROWS), ranges, WHY)
    assert seen_in(frame, None, None) == Seen(len(ROWS), ranges, WHY)
    assert seen_in(frame.limit(0), 5, None) == Seen(0, {}, None)


@pytest.mark.spark
def test_of_many_rows_those_with_gaps_lie_somewhere(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told_rejects, "MAX_COLLECTED", 5)
    frame = spark.createDataFrame(ROWS, COLUMNS)
    number, found, why = seen_in(frame, len(ROWS), None)
    assert (number, why) == (len(ROWS), WHY)
    assert found is not None
    assert set(found["a", 0]) == {RejectedRange(10, 20, WHY), RejectedRange(30, 33)}
    assert found["b", 1] == (RejectedRange(7, 8, WHY),)
    monkeypatch.setattr(told_rejects, "MAX_REASONS", 2)
    number, found, why = seen_in(frame, len(ROWS), None)
    assert (number, found) == (len(ROWS), None), "too many reasons to be told apart"
    assert why is not None
    number, _, why = seen_in(frame.where("offset IN (30, 32)"), len(ROWS), None)
    assert (number, why) in [(2, f"value.n is not a bigint: {shown!r}") for shown in "xy"]


@pytest.mark.spark
@pytest.mark.parametrize("at_once", [5, 10_000])
def test_rows_that_a_constraint_refuses_have_the_topic_of_the_query(
    spark: Any, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(told_rejects, "MAX_COLLECTED", at_once)
    reason = "violates the CHECK constraint small (id < 5)"
    frame = spark.createDataFrame(
        [(0, at, reason) for at in range(6)], "partition int, offset bigint, reason string"
    )
    assert seen_in(frame, 6, "a") == (6, {("a", 0): (RejectedRange(0, 6, reason),)}, reason)
    assert seen_in(frame, 6, None) == (6, None, reason)
    assert seen_in(frame.drop("offset"), 6, "a") == (6, None, reason)


def test_what_two_reads_show() -> None:
    some, other = RejectedRange(1, 2, WHY), RejectedRange(5, 9, "late")
    one, more = Seen(1, {("a", 0): (some,)}, WHY), Seen(4, {("a", 0): (other,)}, "late")
    assert one.and_also(more) == Seen(5, {("a", 0): (some, other)}, "late")
    assert one.and_also(more).and_also(Seen(2, None, "x")) == Seen(7, None, "late")
