"""What a partition's steps tell of its replicas around one offset: who led, who was in sync, when
each had copied it, and which elections followed. Pure; bounds where no more is known.

A broker knows its own timelines alone. One that leads now and followed before knows when *it*
copied the offset, not when the leader of that time appended it: that was before.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ottla.journey.lookup import When
from ottla.journey.step import Kind, Role, Step


class Reign(NamedTuple):
    """From `since_ms` on this leader (-1: none), epoch and in-sync set, as this broker heard of it.

    `was_found`: it was so when the broker started, and may have begun before.
    """

    since_ms: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    end_offset: int
    was_found: bool


class Dropped(NamedTuple):
    """Offsets `begin` to before `end` of this broker (None: the one that is asked) were cut off.

    Those before `committed_end` had been committed, as far as that broker knew (None: unknown).
    """

    at_ms: int
    broker: int | None
    begin: int
    end: int
    committed_end: int | None


class Election(NamedTuple):
    """A new leader epoch. `unclean` None: whether the leader was in sync before is not known."""

    reign: Reign
    previous: Reign | None
    unclean: bool | None
    dropped: tuple[Dropped, ...]


class Copy(NamedTuple):
    """A follower's fetch passed the offset at `when`, or (None) had come to `position` last."""

    when: When | None
    position: int


def reigns(steps: Iterable[Step]) -> list[Reign]:
    """All that is known of who led, oldest first, each once.

    A broker that begins anew notes states without their leader until the controller knows this life
    of it (`replication.life`). A state that differs from the one before in that alone is the same
    reign: who really leads no more is told by the next partition epoch.
    """
    found: list[Reign] = []
    told = [step for step in steps if step.kind is Kind.IN_SYNC]
    for step in sorted(told, key=lambda step: step.since_ms):
        role = cast(Role, step.name)
        if found and found[-1][1:5] == role:
            continue
        if found and role[3] >= 0 and found[-1][2:5] == role[1:]:
            found[-1] = found[-1]._replace(leader=max(role[0], found[-1].leader))
            continue
        found.append(Reign(step.since_ms, *role, step.last, step.unknown_before))
    return found


def reign_at(known: Sequence[Reign], at_ms: int) -> Reign | None:
    """The reign of that moment; None where nothing is known so early."""
    return next((reign for reign in reversed(known) if reign.since_ms <= at_ms), None)


def reigns_between(
    known: Sequence[Reign], since_ms: int | None, until_ms: int, from_epoch: int | None
) -> list[Reign] | None:
    """The reigns in which something may have happened between both times, oldest first, but in no
    epoch before `from_epoch` (None: not known).

    `since_ms` None: at any time up to the other. None where part of that time is not known here.
    """
    if since_ms is None:
        if from_epoch is None:
            return None
        found = [reign for reign in known if reign.leader_epoch >= from_epoch]
        if not found or found[0].was_found:
            return None  # the epoch may have begun with another in-sync set
        found = [reign for reign in found if reign.since_ms <= until_ms]
    else:
        first = reign_at(known, since_ms)
        if first is None:
            return None
        found = [first, *(reign for reign in known if since_ms < reign.since_ms <= until_ms)]
        found = [reign for reign in found if reign.leader_epoch >= (from_epoch or 0)] or found
    # Nothing is appended or committed without a leader.
    led = [reign for reign in found if reign.leader >= 0]
    return list({reign[1:4]: reign for reign in led or found}.values())


def leader_of(known: Sequence[Reign], leader_epoch: int) -> int | None:
    """Who led in that epoch; None where it is not known."""
    for reign in known:
        if reign.leader_epoch == leader_epoch and reign.leader >= 0:
            return reign.leader
    return None


def copies(steps: Iterable[Step], offset: int) -> dict[int, Copy]:
    """How far each follower that fetched from this broker came, and when it passed the offset."""
    found: dict[int, Copy] = {}
    steps = sorted(steps, key=lambda step: step.since_ms)
    for step in steps:
        if step.kind is Kind.CUT and step.before <= offset:
            # What lay here was another record.
            found.clear()
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
    if step.before > offset or step.unknown_before:
        # The first that is known of it is already beyond: it came there some time before.
        return When(None, step.since_ms if offset < step.first else step.until_ms)
    if before is not None and before.position != step.before:
        return When(None, step.until_ms)
    return When(step.since_ms, step.since_ms if offset < step.first else step.until_ms)


def dropped(steps: Iterable[Step]) -> list[Dropped]:
    """What was cut off, here and (as far as it was told to) on followers; each once."""
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


def elections(known: Sequence[Reign], cuts: Sequence[Dropped]) -> list[Election]:
    """Each new leader epoch that is known, with what was cut off under it."""
    found: list[Election] = []
    starts = [
        number
        for number, reign in enumerate(known)
        if reign.leader >= 0 and (number == 0 or not _continues(known, number))
    ]
    for place, number in enumerate(starts):
        reign = known[number]
        until_ms = known[starts[place + 1]].since_ms if place + 1 < len(starts) else None
        some = tuple(
            cut
            for cut in cuts
            if cut.at_ms >= reign.since_ms and (until_ms is None or cut.at_ms < until_ms)
        )
        previous = known[number - 1] if number else None
        found.append(Election(reign, previous, _unclean(reign, previous), some))
    return found


def _continues(known: Sequence[Reign], number: int) -> bool:
    """Whether it is the epoch of the reign before, with another in-sync set or seen anew."""
    reign, before = known[number], known[number - 1]
    return (reign.leader, reign.leader_epoch) == (before.leader, before.leader_epoch)


def _unclean(reign: Reign, previous: Reign | None) -> bool | None:
    """Only where both states follow right upon each other is it known."""
    if previous is None or reign.was_found or previous.partition_epoch < 0:
        return None
    if reign.partition_epoch != previous.partition_epoch + 1:
        return None
    return reign.leader not in previous.isr
