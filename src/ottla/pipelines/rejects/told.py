"""What a batch's rejected rows are: how many, why, and where they lie, for the commit that tells
the brokers.

One read of the rows shows all of it: what Spark reads for it may be long. Up to MAX_COLLECTED rows
are looked at one by one. Of more rows Spark counts those of each partition and reason: where they
are as many as there are offsets between the first and the last of them, all of these are rejected;
else some are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.pipelines.rejected_offsets import Partition, RejectedOffsets, RejectedRange
from ottla.pipelines.source.judge import SHOWN, most_frequent, without_value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.pipelines.rejects.pending import Part
    from ottla.pipelines.source.source import Source

    Ranges = dict[Partition, tuple[RejectedRange, ...]]

MAX_COLLECTED: Final = 10_000
MAX_REASONS: Final = 1_000
"""So many reasons of a partition are told apart where there are more rows than that."""


class Seen(NamedTuple):
    """Rejected rows: their number, the ranges in which they lie, and the most frequent reason.

    `ranges` None: some rows do not say where they are from.
    """

    number: int
    ranges: Ranges | None
    reason: str | None

    def and_also(self, other: Seen) -> Seen:
        """Return what both show."""
        ranges = None
        if self.ranges is not None and other.ranges is not None:
            ranges = dict(self.ranges)
            for partition, found in other.ranges.items():
                ranges[partition] = (*ranges.get(partition, ()), *found)
        more = max(self, other, key=lambda seen: seen.number)
        return Seen(self.number + other.number, ranges, more.reason)


def seen_in(frame: DataFrame, most: int | None, topic: str | None) -> Seen:
    """Return what one read of rejected rows shows.

    `most`: there are no more rows than that; None: Spark counts them first. `topic`: that of rows
    which do not name theirs.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    def given(name: str, kind: str) -> Column:
        return F.col(name) if name in frame.columns else F.lit(None).cast(kind)

    rows = frame.select(
        F.coalesce(given("topic", "string"), F.lit(topic).cast("string")).alias("topic"),
        given("partition", "int").alias("partition"),
        given("offset", "bigint").alias("offset"),
        "reason",
    )
    if (frame.count() if most is None else most) > MAX_COLLECTED:
        return _counted(rows)
    found = [(row[0], row[1], row[2], row[3]) for row in rows.collect()]
    says_where = all(None not in row[:3] for row in found)
    reason = most_frequent(row[3] for row in found if row[3] is not None)
    return Seen(len(found), by_partition(found) if says_where else None, reason)


def _counted(rows: DataFrame) -> Seen:
    """Return the same of many rows, which Spark counts by partition and reason."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = F.regexp_replace("reason", f"(?s){SHOWN}", "$1").alias("kind")
    counted = (
        rows.groupBy("topic", "partition", kind)
        .agg(
            F.count("offset"),
            F.min("offset"),
            F.max("offset"),
            F.count(F.lit(1)).alias("rows"),
            F.first("reason").alias("reason"),
        )
        .limit(MAX_REASONS + 1)
        .collect()
    )
    of_kinds: Counter[str] = Counter()
    for row in counted:
        of_kinds[row["kind"]] += row["rows"]
    frequent = of_kinds.most_common(1)[0][0] if of_kinds else None
    reason = next((row["reason"] for row in counted if row["kind"] == frequent), None)
    if len(counted) > MAX_REASONS:
        return Seen(rows.count(), None, reason)
    ranges: Ranges = {}
    for name, partition, shown, count, first, last, all_rows, _ in counted:
        if name is None or partition is None or count != all_rows:
            return Seen(of_kinds.total(), None, reason)
        is_whole = count == last - first + 1
        one = RejectedRange(first, last + 1, shown if is_whole else None)
        ranges[name, partition] = (*ranges.get((name, partition), ()), one)
    return Seen(of_kinds.total(), ranges, reason)


def told(ranges: Ranges, kept: str, parts: Iterable[Part] = ()) -> dict[Partition, RejectedOffsets]:
    """Return what the commits say. `parts`: of these, ranges with rejected rows were told before,
    and no longer count.
    """
    again: dict[Partition, tuple[int, int]] = {}
    for part in parts:
        for number, end in part.end.items():
            first = max(part.first[number], 0)
            low, high = again.get((part.topic, number), (first, end))
            again[part.topic, number] = (min(low, first), max(high, end))
    return {
        partition: RejectedOffsets(ranges.get(partition, ()), kept, again.get(partition))
        for partition in dict.fromkeys((*ranges, *again))
    }


def somewhere(parts: Iterable[Part], kept: str) -> dict[Partition, RejectedOffsets]:
    """Return that some records of these parts are rejected."""
    ranges: Ranges = {}
    for part in parts:
        for number, end in part.end.items():
            one = RejectedRange(max(part.first[number], 0), end)
            ranges[part.topic, number] = (*ranges.get((part.topic, number), ()), one)
    return told({key: some for key, some in ranges.items() if some}, kept)


def anywhere(
    sources: Iterable[Source], spans: Mapping[str, tuple[Mapping[int, int], Mapping[int, int]]]
) -> Ranges:
    """Return that any record of a batch may be rejected, given its span of each topic."""
    return {
        (source.name, partition): (RejectedRange(first, end),)
        for source in sources
        if source.name in spans
        for partition, end in spans[source.name][1].items()
        if (first := max(spans[source.name][0][partition], 0)) < end
    }


def ranges_of(records: Iterable[tuple[int, str]]) -> tuple[RejectedRange, ...]:
    """Return the ranges of rejected records of one partition, given as offset and reason.

    Neighbours with one reason, whatever value it shows, are one range.
    """
    kinds = sorted((offset, without_value(reason)) for offset, reason in dict(records).items())
    found: list[RejectedRange] = []
    for number, (offset, reason) in enumerate(kinds):
        if number and found[-1].end == offset and found[-1].reason == reason:
            found[-1] = found[-1]._replace(end=offset + 1)
        else:
            found.append(RejectedRange(offset, offset + 1, reason))
    return tuple(found)


def by_partition(
    records: Iterable[tuple[str, int, int, str]],
) -> dict[Partition, tuple[RejectedRange, ...]]:
    """Return the ranges of each partition, of records given as topic, partition, offset, reason."""
    ordered = sorted(records)
    return {
        partition: ranges_of((offset, reason) for _, _, offset, reason in group)
        for partition, group in groupby(ordered, key=lambda record: (record[0], record[1]))
    }
