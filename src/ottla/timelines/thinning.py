"""Keeps a segment's timelines within their limit: the oldest steps are coalesced, in pairs.

Two consecutive steps of the same number become one, whose times and clients are bounds for both.
Each round does this to the older three quarters, until the result is small enough. So recent steps
stay exact, and old ones become coarse. If nothing is left to coalesce (for example thousands of
groups with one step each), the oldest steps are dropped. No remaining step becomes false: gaps
between steps stay visible (see `step.py`). Two steps of rejected offsets become one of which it is
only known that it has some, unless they meet and have one reason.
"""

from collections.abc import Sequence
from typing import Final, cast

from ottla.timelines.file_format import MAX_SPAN
from ottla.timelines.step import (
    Clients,
    Kind,
    Name,
    Pipeline,
    Step,
    joined_clients,
    joined_versions,
)

_KEPT_APART: Final = (
    Kind.SET_BACK,
    Kind.OPENED,
    Kind.IN_SYNC,
    Kind.CUT,
    Kind.DIVERGED,
    Kind.CLOCK,
    Kind.FORGOTTEN,
)


def thin(steps: Sequence[Step], max_steps: int) -> list[Step]:
    """At most `max_steps` (at least 1) of them, oldest coalesced first, in the same order."""
    left = list(steps)
    while len(left) > max_steps:
        old = len(left) - len(left) // 4
        fewer = _pairs_joined(left[:old])
        if len(fewer) > old * 7 // 8:
            return _newest([*fewer, *left[old:]], max_steps)
        left = [*fewer, *left[old:]]
    return left


def _newest(steps: Sequence[Step], max_steps: int) -> list[Step]:
    """The newest steps. What says that the clock was set back stays: other steps are compared."""
    if len(steps) <= max_steps:
        return list(steps)
    clocks: list[Step] = []
    for step in steps[:-max_steps]:
        if step.kind is not Kind.CLOCK:
            continue
        if clocks:
            since_ms = min(clocks[-1].since_ms, step.since_ms)
            until_ms = max(clocks[-1].until_ms, step.until_ms)
            if until_ms - since_ms <= MAX_SPAN:
                clocks[-1] = step._replace(since_ms=since_ms, until_ms=until_ms)
                continue
        clocks.append(step)
    clocks = clocks[-max_steps:]
    return [*clocks, *steps[len(steps) - max_steps + len(clocks) :]]


def _pairs_joined(steps: Sequence[Step]) -> list[Step]:
    out: list[Step] = []
    single: dict[tuple[Kind, Name], int] = {}
    for step in steps:
        track = _track(step)
        index = single.pop(track, None)
        if index is not None:
            joined = _joined(out[index], step)
            if joined is not None:
                out[index] = joined
                continue
        if step.kind not in _KEPT_APART:
            single[track] = len(out)
        out.append(step)
    return out


def _track(step: Step) -> tuple[Kind, Name]:
    """What two steps must have in common to belong to the same number."""
    if step.kind is Kind.REJECTED:
        return step.kind, _pipeline(step)
    if step.kind in (Kind.END, Kind.END_AND_HIGH, Kind.START):
        return step.kind, None
    return step.kind, step.name


def _joined(one: Step, other: Step) -> Step | None:
    """Both as one step, or None if that would hide a gap or a step back."""
    if one.kind is Kind.REJECTED:
        return _rejected_joined(one, other)
    if (
        one.by != other.by
        or one.checkpoint != other.checkpoint
        or one.last != other.before
        or other.unknown_before
        or other.since_ms < one.until_ms
    ):
        return None
    if other.last - one.before > MAX_SPAN or other.until_ms - one.since_ms > MAX_SPAN:
        return None
    name, versions = one.name, one.versions
    if one.kind in (Kind.END, Kind.END_AND_HIGH):
        name = joined_clients(cast(Clients, one.name), cast(Clients, other.name))
    elif one.kind is Kind.START:
        name = one.name if one.name == other.name else "several reasons"
    if other.versions is not None:
        versions = joined_versions(one.versions, other.versions)
    return one._replace(
        name=name,
        until_ms=other.until_ms,
        last=other.last,
        versions=versions,
        has_rejects=one.has_rejects or other.has_rejects,
        reads_committed=one.reads_committed and other.reads_committed,
        is_plain=one.is_plain and other.is_plain,
    )


def _pipeline(step: Step) -> Pipeline:
    """Whose rejected offsets a step has."""
    return cast(Pipeline, cast(tuple[str, ...], step.name)[:3])


def _rejected_joined(one: Step, other: Step) -> Step | None:
    """What is known of the offsets of both. It is said when the later one is, so that it counts
    instead of both.
    """
    before, last = min(one.before, other.before), max(one.last, other.last)
    since_ms = min(one.since_ms, other.since_ms)
    until_ms = max(one.until_ms, other.until_ms)
    if last - before > MAX_SPAN or until_ms - since_ms > MAX_SPAN:
        return None
    are_whole = one.first == one.last and other.first == other.last
    name, first = one.name, last
    if (
        one.name != other.name
        or not are_whole
        or max(one.before, other.before) > min(one.last, other.last)
    ):
        names = (cast(tuple[str, ...], step.name) for step in (one, other))
        kept = next((said[3] for said in names if len(said) > 3), "")
        name, first = (*_pipeline(one), kept, ""), before
    return Step(Kind.REJECTED, name, since_ms, until_ms, before, first, last)
