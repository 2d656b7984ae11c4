"""Which offsets of a partition a batch rejected, as its commit says it to the journey. Pure.

The metadata of a commit has it as

    "rejects": {"kept": "orders_rejected", "reasons": ["key is not a JSON object of the schema"],
                "ranges": [[4200, 4210, 0], [4300, 4900, null]], "again": [4000, 4900]}

A range is its first offset, the offset after its last, and the number of the reason for which all
of its records were rejected; null: some of them were, or may have been. `kept` is where the rows
are. `again`: what earlier commits said of these offsets no longer counts, as the ranges say all.
At most MAX_RANGES are told; of more of them only the first and the last offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

MAX_RANGES: Final = 64
MAX_REASON_CHARS: Final = 200
MAX_KEPT_CHARS: Final = 256

Partition = tuple[str, int]
Span = tuple[int, int]


class RejectedRange(NamedTuple):
    """The offsets from `first` to before `end`; `reason` None: only some of them."""

    first: int
    end: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RejectedOffsets:
    """What a commit says of a partition: see the top of this file."""

    ranges: tuple[RejectedRange, ...]
    kept: str = ""
    again: Span | None = None

    def document(self) -> dict[str, Any]:
        """Return it as a commit has it."""
        if len(self.ranges) > MAX_RANGES:
            return self.shorter().document()
        reasons = list(dict.fromkeys(one.reason for one in self.ranges if one.reason is not None))
        document: dict[str, Any] = {
            "ranges": [
                [one.first, one.end, None if one.reason is None else reasons.index(one.reason)]
                for one in self.ranges
            ]
        }
        if reasons:
            document["reasons"] = [reason[:MAX_REASON_CHARS] for reason in reasons]
        if self.kept:
            document["kept"] = self.kept[:MAX_KEPT_CHARS]
        if self.again is not None:
            document["again"] = list(self.again)
        return document

    def shorter(self) -> RejectedOffsets:
        """Return what takes less space: some of the offsets were rejected."""
        if not self.ranges:
            return self
        first, end = min(one.first for one in self.ranges), max(one.end for one in self.ranges)
        return replace(self, ranges=(RejectedRange(first, end),))

    def after(self, earlier: RejectedOffsets) -> RejectedOffsets:
        """Return this together with what an earlier batch said, whose commit was not made."""
        spans = [one.again for one in (earlier, self) if one.again is not None]
        again = (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None
        both = RejectedOffsets(earlier.ranges + self.ranges, self.kept or earlier.kept, again)
        return both if len(both.ranges) <= MAX_RANGES else both.shorter()


Told = Mapping[Partition, RejectedOffsets]
"""What the commits of a batch say, by partition; those that rejected nothing are left out."""


def joined(earlier: Told, later: Told) -> dict[Partition, RejectedOffsets]:
    """Return what both say."""
    found = dict(earlier)
    for partition, said in later.items():
        found[partition] = said.after(found[partition]) if partition in found else said
    return found


def untold(
    before: Mapping[str, Mapping[int, int]], ends: Mapping[str, Mapping[int, int]]
) -> dict[Partition, RejectedOffsets]:
    """Return that any record between the ends of two batches may have been rejected."""
    return {
        (topic, partition): RejectedOffsets((RejectedRange(first, end),))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
        if (first := max(before.get(topic, {}).get(partition, 0), 0)) < end
    }
