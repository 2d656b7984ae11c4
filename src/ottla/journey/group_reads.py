"""What is known of the groups that passed an offset: a value with its bounds, its source and its
doubt, before anything is said in words. Pure.

A group has read a message if one of its members committed an offset after it. Everything else that
moves its position past the message leaves open whether it was read.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, cast

from ottla.journey.facts import Position
from ottla.journey.group_steps import POSITIONS, group_of, in_order, position_after
from ottla.journey.offset_history import UNWRITTEN, When, Written, commit_step
from ottla.timelines.step import By, Kind, Step


class Doubt(Enum):
    """Why it is not known whether a group that passed the message has read it. Written to JSON."""

    FIRST_COMMIT = "first_commit"
    """Its first commit passed it: it may have begun after the message."""
    NO_MEMBER = "no_member"
    """No member committed, and the group had none: a consumer that assigns partitions to itself
    has read it, or a tool set the group forward.
    """
    OUTSIDE = "outside"
    """No member committed, of a group that has or had members: most likely it was set forward."""
    NOT_RECORDED = "not_recorded"
    """Who committed is not recorded."""
    AHEAD = "ahead"
    """It committed before the message was appended, so past the log end or by another clock."""
    REWRITTEN = "rewritten"
    """It may have read another record at this offset, which was truncated."""
    UNORDERED = "unordered"
    """It is not known whether the message was there when it committed: steps are lost, a clock was
    set back, or the message was compacted since then or before.
    """


_BY = {
    By.UNKNOWN: Doubt.NOT_RECORDED,
    By.MEMBER: None,
    By.SIMPLE: Doubt.NO_MEMBER,
    By.OUTSIDE: Doubt.OUTSIDE,
}


class Back(NamedTuple):
    """The group was set back to an offset at or before the message, and has not passed it again.

    `at_ms` None: not recorded.
    """

    at_ms: int | None
    to_offset: int


class Gone(NamedTuple):
    """The group's offset was removed after it had passed the message; None: not recorded."""

    at_ms: int | None
    reason: str | None


class GroupRead(NamedTuple):
    """A group passed the message: it has read it, unless there is a `doubt`.

    `recorded_by`: the broker by whose clock `when` is (-1: the one that answers).
    """

    group: str
    when: When
    doubt: Doubt | None = None
    recorded_by: int = -1
    back: Back | None = None
    gone: Gone | None = None

    @property
    def was_its_own(self) -> bool:
        """Whether the group passed this very record."""
        return self.doubt not in (Doubt.AHEAD, Doubt.REWRITTEN, Doubt.UNORDERED)


def group_reads(
    steps: Iterable[Step],
    offset: int,
    positions: Mapping[str, Position],
    written: Written = UNWRITTEN,
    *,
    all_known: bool = True,
) -> list[GroupRead]:
    """The groups that passed the offset, in the order of time; those without a time at the end.

    `all_known`: a group without a position has no offset.
    """
    every = list(steps)
    by_group: dict[str, list[Step]] = {group: [] for group in sorted(positions)}
    for step in every:
        if step.kind in POSITIONS:
            by_group.setdefault(group_of(step), []).append(step)
    before = Doubt.AHEAD if written.rewritten_ms is None else Doubt.REWRITTEN
    found: list[GroupRead] = []
    for group, some in by_group.items():
        walk = _Walk(group, offset, written, before)
        for step in in_order(some):
            walk.take(step)
        read = walk.now_at(positions.get(group), all_known=all_known)
        if read is not None:
            found.append(read)
    return sorted(found, key=lambda read: (read.when.until_ms is None, read.when.until_ms or 0))


def groups_ahead(
    offset: int, positions: Mapping[str, Position], written: Written = UNWRITTEN
) -> list[GroupRead]:
    """The groups that are past an offset that is not written."""
    doubt = Doubt.AHEAD if written.rewritten_ms is None else Doubt.REWRITTEN
    return [
        GroupRead(group, When(None, now.committed_ms), doubt, now.coordinator)
        for group, now in sorted(positions.items())
        if now.offset > offset
    ]


class _Walk:
    """One group's steps, in the order of time."""

    def __init__(self, group: str, offset: int, written: Written, before: Doubt) -> None:
        """`before`: what to say of a commit that came before the record."""
        self.group = group
        self.offset = offset
        self.written = written
        self.before = before
        self.read: GroupRead | None = None
        self.earlier: Step | None = None
        self.passed: Step | None = None
        """Went past the offset before this broker had the record."""

    def take(self, step: Step) -> None:
        if self.written.is_after(step):
            if step.kind is not Kind.GROUP:
                self.passed = None if position_after(step) <= self.offset else self.passed
            elif step.last > self.offset:
                self.passed = step
            self.earlier = None if self.passed is step else step
            return
        if step.kind is Kind.GROUP:
            if step.last > self.offset:
                self._pass(step)
        elif self.passed is not None and self.read is None:
            self.passed = None if position_after(step) <= self.offset else self.passed
        else:
            self._return(step)
        self.earlier = step

    def _pass(self, step: Step) -> None:
        when, doubt = _crossed(step, self.earlier, self.offset)
        if doubt is Doubt.NOT_RECORDED and step.before > self.offset:
            when, doubt = self._unseen(when, step)
        else:
            when = self.written.bounded(when, step)
        if self.passed is not None and not self.written.is_surely_after(self.passed):
            when = When(None, when.until_ms)  # perhaps it was this record after all
        again = GroupRead(self.group, when, doubt, step.broker)
        if self.read is None or (self.read.doubt is not None and doubt is None):
            self.read = again._replace(gone=self.read.gone if self.read else None)
        if self.read.gone is None or doubt is None:
            self.read = self.read._replace(back=None, gone=None)

    def _return(self, step: Step) -> None:
        """The group was set back, or its offset was removed."""
        if self.read is None and step.last > self.offset:
            # It had come this far, even if the step of it is lost.
            since_ms = self.earlier.until_ms if self.earlier else None
            when, doubt = self._unseen(When(since_ms, step.since_ms), step)
            self.read = GroupRead(self.group, when, doubt, step.broker)
        if self.read is None or position_after(step) > self.offset:
            return
        gone = self.read.gone
        if step.kind is Kind.FORGOTTEN:
            reason = cast(tuple[str, str], step.name)[1]
            self.read = self.read._replace(back=None, gone=gone or Gone(step.since_ms, reason))
        elif step.last > self.offset and gone is None:
            self.read = self.read._replace(back=Back(step.since_ms, step.first))

    def now_at(self, position: Position | None, *, all_known: bool) -> GroupRead | None:
        """What is known, given the group's position now (None: it has none, if `all_known`)."""
        read = self.read
        if read is None and self.passed is not None:
            when = When(None, self.passed.until_ms)
            return GroupRead(self.group, when, self._before(self.passed), self.passed.broker)
        if position is None:
            if read is not None and read.gone is None and all_known:
                read = read._replace(back=None, gone=Gone(None, None))
            return read
        if position.offset <= self.offset:
            if read is not None and read.back is None and read.gone is None:
                read = read._replace(back=Back(None, position.offset))
            return read
        if read is None:
            return self._passed_unseen(position)
        return read._replace(back=None)

    def _unseen(self, when: When, step: Step) -> tuple[When, Doubt]:
        """It passed the offset at a time from which no step is left, up to this one."""
        if self.written.may_follow(when.since_ms, step):
            return when, Doubt.UNORDERED
        return self.written.bounded(when, step), Doubt.NOT_RECORDED

    def _before(self, step: Step) -> Doubt:
        """What to say of a step that came before the record, or may have."""
        is_known = self.before is not Doubt.AHEAD or self.written.is_ahead(step)
        return self.before if is_known else Doubt.UNORDERED

    def _is_by_other(self, step: Step, position: Position) -> bool:
        """Whether the step is by another clock than the position's."""
        own = (-1, self.written.broker)
        if step.broker in own:
            return position.coordinator not in own
        return step.broker != position.coordinator

    def _passed_unseen(self, position: Position) -> GroupRead:
        """The group is past the offset, and no step says when: by its last commit."""
        at_ms, since_ms = position.committed_ms, None
        if self.earlier is not None and not self._is_by_other(self.earlier, position):
            since_ms = self.earlier.until_ms
        doubt: Doubt = Doubt.NOT_RECORDED if self.before is Doubt.AHEAD else self.before
        when = When(since_ms, at_ms)
        if at_ms is not None:
            last = commit_step(position.offset, at_ms, position.coordinator)
            if self.written.may_precede(last):
                when, doubt = When(None, at_ms), self._before(last)
            when = self.written.bounded(when, last)
        return GroupRead(self.group, when, doubt, position.coordinator)


def _crossed(step: Step, earlier: Step | None, offset: int) -> tuple[When, Doubt | None]:
    """When the first step that ends past the offset passed it, and what remains in doubt; `earlier`
    is the step before it. If a step does not begin at the earlier one's value, steps between them
    are lost.
    """
    is_first = step.unknown_before and offset < step.first
    until_ms = step.since_ms if offset < step.first else step.until_ms
    if is_first and (step.is_first or earlier is None):
        # An earlier version did not know whether there had been a commit.
        return When(step.since_ms, until_ms), Doubt.FIRST_COMMIT
    if step.before > offset:
        return When(None if earlier is None else earlier.until_ms, until_ms), Doubt.NOT_RECORDED
    # The group may have come to the beginning of this step by others, which are lost.
    is_whole = earlier is None or position_after(earlier) == step.before
    since_ms = step.since_ms if earlier is None or is_whole else earlier.until_ms
    return When(since_ms, until_ms), _BY[step.by]
