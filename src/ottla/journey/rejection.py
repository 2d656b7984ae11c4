"""Whether a pipeline rejected a message, from what its commits said. Pure.

A commit names the offsets that its batch rejected, or, where these are too many, a range that has
some of them. What was said last counts. After a group was set back and has read the message again,
only what was said since then counts.

    "rejected": null (it was not), or
                {"certain": true, "reason": why (null: not known),
                 "kept": where the row is (null: not known),
                 "first_offset", "last_offset": these were all rejected for this reason}, or
                {"certain": false, ...}: some of the offsets were, and it is not known whether the
                 message is one of them
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ottla.journey.group_steps import POSITIONS, group_of
from ottla.journey.moment import Document
from ottla.journey.offset_history import Delivered
from ottla.timelines.step import Kind, Step


class Rejection(NamedTuple):
    """The offsets from `first` to before `end`: all were rejected, or some (`is_certain` false).

    `kept`: where the rows are; `reason`: why; both "" if not known.
    """

    first: int
    end: int
    is_certain: bool
    kept: str = ""
    reason: str = ""

    def document(self) -> Document:
        """As the journey has it."""
        return {
            "certain": self.is_certain,
            "reason": self.reason or None,
            "kept": self.kept or None,
            "first_offset": self.first,
            "last_offset": self.end - 1,
        }


def rejection_of(
    steps: Iterable[Step], one: Delivered, offset: int, position: int
) -> Rejection | None:
    """What `steps` say of an offset that was delivered as `one`; None: it was not rejected.

    `position`: the group's current committed offset.
    """
    known = list(steps)
    said = [step for step in known if step.kind is Kind.REJECTED and _is_of(step, one)]
    said.sort(key=lambda step: (step.until_ms, _exactness(step)))
    last = next((step for step in reversed(said) if step.before <= offset < step.last), None)
    if last is None:
        return _in_doubt(said, one)
    is_withdrawn = _exactness(last) == 0
    if is_withdrawn or _was_read_again(known, one.pipeline[0], last.until_ms, offset, position):
        return None
    *_, kept, reason = cast(tuple[str, ...], last.name)
    if offset < last.first:
        return Rejection(last.before, last.first, True, kept, reason)
    return Rejection(last.first, last.last, False, kept)


def _is_of(step: Step, one: Delivered) -> bool:
    return cast(tuple[str, ...], step.name)[:3] == one.pipeline


def _exactness(step: Step) -> int:
    """Of the steps of one commit the more exact ones count: what it withdraws, the ranges that have
    some rejected offsets, those that have only such.
    """
    if len(cast(tuple[str, ...], step.name)) == 3:
        return 0
    return 1 if step.first < step.last else 2


def _in_doubt(said: Sequence[Step], one: Delivered) -> Rejection | None:
    """Nothing is said of the offset. It was not rejected, unless what was said is lost."""
    first, end = one.span
    is_told = not one.has_gap and any(step.before < end and step.last > first for step in said)
    return Rejection(first, end, False) if one.may_have_rejects and not is_told else None


def _was_read_again(
    steps: Iterable[Step], group: str, since_ms: int, offset: int, position: int
) -> bool:
    """Whether the group was set back to the offset or before it later on, and passed it again."""
    of_group = [
        step
        for step in steps
        if step.kind in POSITIONS and group_of(step) == group and step.since_ms > since_ms
    ]
    back = [
        step.since_ms
        for step in of_group
        if step.kind is not Kind.GROUP and step.first <= offset < step.last
    ]
    return bool(back) and (
        position > offset
        or any(
            step.kind is Kind.GROUP and step.last > offset and step.since_ms > min(back)
            for step in of_group
        )
    )
