"""Which steps of the groups say something about an offset. Pure.

A partition's timelines may have 100,000 steps of groups; a coordinator tells another broker only
those that the journey of one offset needs.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, cast

from ottla.timelines.step import Kind, Step
from ottla.timelines.thinning import thin

MAX_STEPS_TOLD: Final = 4_000
"""Of all groups together, 24 to 48 bytes each; beyond that they are merged, the oldest first."""
POSITIONS: Final = frozenset({Kind.GROUP, Kind.SET_BACK, Kind.FORGOTTEN})
OF_GROUPS: Final = POSITIONS | {Kind.DELIVERED, Kind.REJECTED, Kind.CLOCK}
"""The kinds that a group's coordinator records."""


def about(steps: Iterable[Step], offset: int) -> list[Step]:
    """The steps of groups and pipelines that the journey of this offset needs, in the same order.

    Of a group's positions: each step that passes the offset, and the one before it. All of the
    pipelines', whose other batches tell what became of a row.
    """
    found = [step for step in steps if step.kind in OF_GROUPS]
    if any(step.kind is Kind.CLOCK for step in found):
        return thin(found, MAX_STEPS_TOLD)  # they have no certain order
    by_group: dict[str, list[Step]] = {}
    for step in found:
        if step.kind in POSITIONS:
            by_group.setdefault(group_of(step), []).append(step)
    kept = {id(step) for some in by_group.values() for step in _passing(some, offset)}
    return thin(
        [step for step in found if step.kind not in POSITIONS or id(step) in kept], MAX_STEPS_TOLD
    )


def _passing(steps: Sequence[Step], offset: int) -> list[Step]:
    kept: list[Step] = []
    earlier: Step | None = None
    for step in in_order(steps):
        behind = earlier is None or position_after(earlier) <= offset
        if step.kind is not Kind.GROUP or earlier is None or (step.last > offset and behind):
            if earlier is not None and (not kept or kept[-1] is not earlier):
                kept.append(earlier)
            kept.append(step)
        earlier = step
    return kept


def in_order(steps: Iterable[Step]) -> list[Step]:
    """One group's steps in the order of time. The files have them by offset; of those of one
    millisecond, each begins where the one before has ended.
    """
    found: list[Step] = []
    for _, same in groupby(sorted(steps, key=_since_ms), key=_since_ms):
        left = list(same)
        while left:
            position = position_after(found[-1]) if found else None
            step = next((step for step in left if _begin(step) == position), left[0])
            left.remove(step)
            found.append(step)
    return found


def _since_ms(step: Step) -> int:
    return step.since_ms


def _begin(step: Step) -> int:
    return step.before if step.kind is Kind.GROUP else step.last


def group_of(step: Step) -> str:
    """The group of a step of positions."""
    return cast(str, step.name[0] if isinstance(step.name, tuple) else step.name)


def position_after(step: Step) -> int:
    """The group's position once the step was over."""
    return step.last if step.kind is Kind.GROUP else step.first
