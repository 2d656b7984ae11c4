"""The offsets that a pipeline's batch rejected: read from its commit, written as steps.

A commit says

    "rejects": {"kept": "orders_rejected", "reasons": ["key is not a JSON object of the schema"],
                "ranges": [[4200, 4210, 0], [4300, 4900, null]], "again": [4000, 4900]}

A range is its first offset, the offset after its last, and the number of the reason for which *all*
of its messages were rejected; null: *some* of them were, and the commit does not say which. `kept`
is where the rejected rows are. `again`: what earlier commits said of these offsets no longer
counts, as the batch's ranges say all that is known of them. `kept`, `reasons` and `again` may be
absent.

See `Kind.REJECTED` for the steps. Pure.
"""

from typing import Final, NamedTuple

from ottla.timelines.step import Kind, Pipeline, Step

MAX_RANGES: Final = 64
MAX_REASON_CHARS: Final = 256
MAX_KEPT_CHARS: Final = 256
MAX_SPAN: Final = 2**32 - 1
"""Offsets that one step of a file may span."""

Span = tuple[int, int]


class RejectedRange(NamedTuple):
    """The offsets from `first` to before `end`; `reason` None: only some of them."""

    first: int
    end: int
    reason: str | None


class RejectedOffsets(NamedTuple):
    """What a commit says: see the top of this file."""

    ranges: tuple[RejectedRange, ...]
    kept: str = ""
    again: Span | None = None

    def reaches(self, offset: int) -> bool:
        """Whether an offset at or after this one was rejected, or may have been."""
        return any(one.end > offset for one in self.ranges)


def read_rejected(said: object) -> RejectedOffsets | None:
    """What the `rejects` of a commit say, or None if they are none. Of more than `MAX_RANGES` it is
    only known that they lie between the first and the last.
    """
    if not isinstance(said, dict):
        return None
    given, reasons, kept = said.get("ranges"), said.get("reasons"), said.get("kept")
    known = reasons if isinstance(reasons, list) else []
    ranges: list[RejectedRange] = []
    for one in given if isinstance(given, list) else ():
        span = _span(one[:2]) if isinstance(one, list) and len(one) == 3 else None
        if span is None:
            return None
        ranges.append(RejectedRange(*span, _reason(one[2], known)))
    again = _span(said.get("again"))
    if len(ranges) > MAX_RANGES:
        ends = max(one.end for one in ranges)
        ranges = [RejectedRange(min(one.first for one in ranges), ends, None)]
    if not ranges and again is None:
        return None
    kept_in = kept[:MAX_KEPT_CHARS] if isinstance(kept, str) else ""
    return RejectedOffsets(tuple(ranges), kept_in, again)


def rejected_steps(
    pipeline: Pipeline, said: RejectedOffsets, end_offset: int, now_ms: int
) -> list[Step]:
    """The steps of a commit at `now_ms`, to a log that ends at `end_offset`."""
    steps: list[Step] = []
    if said.again is not None:
        first, end = _fitting(*said.again, end_offset)
        if first < end:
            steps.append(Step(Kind.REJECTED, pipeline, now_ms, now_ms, first, end, end))
    for one in said.ranges:
        first, end = _fitting(one.first, one.end, end_offset)
        if first >= end:
            continue
        until = first if one.reason is None else end
        name = (*pipeline, said.kept, one.reason or "")
        steps.append(Step(Kind.REJECTED, name, now_ms, now_ms, first, until, end))
    return steps


def _fitting(first: int, end: int, end_offset: int) -> Span:
    end = min(end, end_offset)
    return max(first, end - MAX_SPAN), end


def _reason(number: object, reasons: list[object]) -> str | None:
    """The reason with this number, "" if the commit has none with it; None for null."""
    if number is None:
        return None
    if isinstance(number, int) and 0 <= number < len(reasons):
        reason = reasons[number]
        return reason[:MAX_REASON_CHARS] if isinstance(reason, str) else ""
    return ""


def _span(said: object) -> Span | None:
    if not isinstance(said, list) or len(said) != 2:
        return None
    first, end = said
    for one in (first, end):
        if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one < 2**63:
            return None
    return (first, end) if first < end else None
