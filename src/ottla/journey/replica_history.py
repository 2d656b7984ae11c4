"""What a partition's steps say about its replicas: who led, who was in sync, when each replica had
copied an offset, and which elections followed. Pure; unknown times are bounds.

A broker knows only its own timelines. A leader that was a follower before knows when it copied the
offset itself. The leader of that time appended it earlier.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ottla.journey.offset_history import When
from ottla.timelines.step import Kind, Role, Step


class Leadership(NamedTuple):
    """This leader (-1: none), epoch and in-sync set from `since_ms` on, as this broker learned of
    it.

    `was_found`: it was so when the broker started, or is the first one of which steps are left, and
    may have begun earlier.
    """

    since_ms: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    end_offset: int
    was_found: bool


class Dropped(NamedTuple):
    """Offsets from `begin` to before `end` of this broker (None: the one that answers) were
    truncated.

    Those before `committed_end` had been committed, as far as that broker knew (None: unknown).
    """

    at_ms: int
    broker: int | None
    begin: int
    end: int
    committed_end: int | None


class Election(NamedTuple):
    """A new leader epoch. `unclean` is None if it is unknown whether the leader had been in
    sync.
    """

    leadership: Leadership
    previous: Leadership | None
    unclean: bool | None
    dropped: tuple[Dropped, ...]


class Copy(NamedTuple):
    """A follower's fetch offset passed the offset at `when`, or (None) was last at `position`."""

    when: When | None
    position: int


def leaderships(steps: Iterable[Step]) -> list[Leadership]:
    """All known leaderships, oldest first, each once.

    A broker that restarts records states without a leader until the controller knows its new
    incarnation (`replication.incarnation`). A state that differs from the one before only in that
    is the same leadership: a real change of the leader has a new partition epoch.
    """
    found: list[Leadership] = []
    changes = [step for step in steps if step.kind is Kind.IN_SYNC]
    for step in sorted(changes, key=_order_of_change):
        role = cast(Role, step.name)
        if found and found[-1][1:5] == role:
            continue
        if found and role[3] >= 0 and found[-1][2:5] == role[1:]:
            found[-1] = found[-1]._replace(leader=max(role[0], found[-1].leader))
            continue
        # The first one that is known may have begun before, too.
        was_found = step.unknown_before or not found
        found.append(Leadership(step.since_ms, *role, step.last, was_found))
    return found


def _order_of_change(step: Step) -> tuple[int, int, int]:
    """Epochs only grow, also if the clock is set back."""
    _, leader_epoch, _, partition_epoch = cast(Role, step.name)
    return leader_epoch, partition_epoch, step.since_ms


def leadership_at(known: Sequence[Leadership], at_ms: int) -> Leadership | None:
    """The leadership at that time; None if nothing is known for so early a time."""
    return next(
        (leadership for leadership in reversed(known) if leadership.since_ms <= at_ms), None
    )


def leaderships_between(
    known: Sequence[Leadership],
    since_ms: int | None,
    until_ms: int,
    from_epoch: int | None,
    *,
    is_follower: bool = False,
) -> list[Leadership] | None:
    """The leaderships in which something may have happened between both times, oldest first, in no
    epoch before `from_epoch` (None: not known).

    `since_ms` None: at any time up to the other. None where part of that time is not known here.
    `is_follower`: this broker did not lead, so it learned of each leadership after it had begun.
    """
    if since_ms is None:
        if from_epoch is None:
            return None
        found = [leadership for leadership in known if leadership.leader_epoch >= from_epoch]
        if not found or found[0].was_found:
            return None  # the epoch may have begun with another in-sync set
        earlier = [one for one in known if one.leader_epoch < from_epoch][-1:]
        if not _are_all([*earlier, found[0]]):
            return None
        found = [leadership for leadership in found if leadership.since_ms <= until_ms]
    else:
        # A change in the same millisecond may have come before or after.
        first = leadership_at(known, since_ms - 1)
        if first is None:
            return None
        found = [
            first,
            *(leadership for leadership in known if since_ms <= leadership.since_ms <= until_ms),
        ]
    later = [leadership for leadership in known if leadership.since_ms > until_ms][:1]
    if not _are_all([*found, *later]):
        return None
    if is_follower:
        # Within its epoch this broker may have learned too late of the next in-sync set.
        found += [one for one in later if found and one.leader_epoch == found[-1].leader_epoch]
    found = [one for one in found if one.leader_epoch >= (from_epoch or 0)] or found
    # Nothing is appended or committed without a leader.
    led = [leadership for leadership in found if leadership.leader >= 0]
    return list({leadership[1:4]: leadership for leadership in led or found}.values())


def _are_all(known: Sequence[Leadership]) -> bool:
    """Whether no leadership between these is missing, as far as they have a partition epoch."""
    epochs = sorted({one.partition_epoch for one in known if one.partition_epoch >= 0})
    return not epochs or epochs[-1] - epochs[0] < len(epochs)


def leader_of(known: Sequence[Leadership], leader_epoch: int) -> int | None:
    """The leader of that epoch; None if unknown."""
    for leadership in known:
        if leadership.leader_epoch == leader_epoch and leadership.leader >= 0:
            return leadership.leader
    return None


def previous_leader(known: Sequence[Leadership], leadership: Leadership) -> int | None:
    """Who led before; None if a state between both may be missing. Each change of the leader, also
    to none, has the next leader epoch.
    """
    epoch = leadership.leader_epoch
    for before in reversed(known):
        if before.leader_epoch >= epoch:
            continue
        if before.leader_epoch != epoch - 1:
            return None
        if before.leader >= 0:
            return before.leader
        if before.was_found:
            return None  # perhaps this broker only did not know the leader yet
        epoch = before.leader_epoch
    return None


def copies(steps: Iterable[Step], offset: int) -> dict[int, Copy]:
    """How far each follower that fetched from this broker came, and when it passed the offset."""
    found: dict[int, Copy] = {}
    led: tuple[object, ...] = ()
    steps = sorted(steps, key=lambda step: step.since_ms)
    for step in steps:
        is_short = step.kind is Kind.OPENED and step.last <= offset
        if is_short or (step.kind is Kind.CUT and step.before <= offset):
            # The offset had another record before.
            found.clear()
        if step.kind is Kind.IN_SYNC and (step.unknown_before or cast(Role, step.name)[:2] != led):
            # Fetches from the leader of before, or before this one's start, may be lost.
            led = cast(Role, step.name)[:2]
            found = {broker: copy for broker, copy in found.items() if copy.when is not None}
        if step.kind is not Kind.REPLICA:
            continue
        broker = int(cast(str, step.name))
        before = found.get(broker)
        if step.last <= offset:
            found[broker] = Copy(None, step.last)
        elif before is None or before.when is None:
            found[broker] = Copy(_copied(step, before, offset), step.last)
        else:
            found[broker] = before._replace(position=step.last)
    return found


def _copied(step: Step, before: Copy | None, offset: int) -> When:
    if step.first <= offset:
        # It was not past the offset at the step's first fetch, and was at its last one.
        return When(step.since_ms, step.until_ms)
    if step.before > offset or step.unknown_before:
        # Its first known offset is already past it, so it passed some time before.
        return When(None, step.since_ms)
    if before is not None and before.position != step.before:
        return When(None, step.until_ms)
    return When(step.since_ms, step.since_ms)


def dropped(steps: Iterable[Step]) -> list[Dropped]:
    """What was truncated, here and (as far as known) on followers; each once."""
    found: dict[tuple[int | None, int, int], Dropped] = {}
    for step in sorted(steps, key=lambda step: step.since_ms):
        if step.kind is Kind.CUT:
            one = Dropped(step.since_ms, None, step.before, step.last, step.first)
        elif step.kind is Kind.DIVERGED:
            broker = int(cast(str, step.name))
            one = Dropped(step.since_ms, broker, step.before, step.last, None)
        else:
            continue
        found.setdefault(one[1:4], one)
    return list(found.values())


def elections(known: Sequence[Leadership], cuts: Sequence[Dropped]) -> list[Election]:
    """Each known leader epoch, with what was truncated in it."""
    found: list[Election] = []
    starts = [
        number
        for number, leadership in enumerate(known)
        if leadership.leader >= 0 and (number == 0 or not _continues(known, number))
    ]
    for index, number in enumerate(starts):
        leadership = known[number]
        until_ms = known[starts[index + 1]].since_ms if index + 1 < len(starts) else None
        some = tuple(
            cut
            for cut in cuts
            if cut.at_ms >= leadership.since_ms and (until_ms is None or cut.at_ms < until_ms)
        )
        previous = known[number - 1] if number else None
        found.append(Election(leadership, previous, _unclean(leadership, previous), some))
    return found


def _continues(known: Sequence[Leadership], number: int) -> bool:
    """Whether it has the same leader epoch as the one before, with another in-sync set or after a
    restart.
    """
    leadership, before = known[number], known[number - 1]
    return (leadership.leader, leadership.leader_epoch) == (before.leader, before.leader_epoch)


def _unclean(leadership: Leadership, previous: Leadership | None) -> bool | None:
    """Known only if the two states are consecutive."""
    if previous is None or leadership.was_found or previous.partition_epoch < 0:
        return None
    if leadership.partition_epoch != previous.partition_epoch + 1:
        return None
    return leadership.leader not in previous.isr
