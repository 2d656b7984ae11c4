"""Checks the generations of a group. Pure.

A generation that completed SyncGroup is in the coordinator's log, so every later coordinator knows
it. From then on generations only grow, a partition has one owner in each, and commits from members
of earlier generations are rejected. (A generation that only completed JoinGroup may be assigned
again: a coordinator that fails loses it.)

Like Kafka's (GroupMetadataManager.classicGroupJoin and classicGroupSync), a coordinator answers a
member of a stable group from memory: it appends nothing, so it does not notice that it was
replaced. A consumer that asks such a coordinator is told its old generation. Nothing else is
excused: what has to be appended, as an assignment or a commit, a replaced coordinator must refuse.

A group that has neither members nor offsets is removed, and begins again with generation 1, as in
Kafka (GroupCoordinatorShard.cleanupGroupMetadata). So until the first commit is accepted, a
generation that comes again may be another one. A consumer that was paused may hear of the former
one only after that commit: an answer that was asked for before it counts then for no generation.

A group that is empty and is joined in the other protocol begins again, too, whatever it has
committed. That it was empty, `Emptied` says, for histories of clients alone cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faults.anomaly import Anomaly, Kind
from faults.history import Committed, Emptied, Event, Synced


def check(events: Sequence[Event]) -> Iterator[Anomaly]:
    """All anomalies in the order of the history; no policy allows any of them."""
    owners: dict[tuple[int, int], int] = {}
    newest: dict[int, int] = {}
    """By consumer."""
    known: list[tuple[int, int]] = []
    """(time, highest generation that had completed SyncGroup)."""
    first_commit_ms: int | None = None
    """When the first accepted commit was answered."""
    emptied_ms: list[int] = []
    """When the group was empty, since it has begun again last."""
    began_again_ms = 0
    """It was empty at this time, and has begun again since."""
    for event in events:
        match event:
            case Synced():
                highest = known[-1][1] if known else -1
                if _begins_again(event, owners, newest, highest):
                    if _asked_before(event, began_again_ms) or (
                        first_commit_ms is not None and _asked_before(event, first_commit_ms)
                    ):
                        continue
                    before = [each for each in emptied_ms if not _asked_before(event, each)]
                    if before or first_commit_ms is None:
                        for each in (owners, newest, known):
                            each.clear()
                    if before:
                        began_again_ms = before[-1]
                        emptied_ms = emptied_ms[len(before) :]
                yield from _synced(event, owners, newest)
                if not known or event.generation > known[-1][1]:
                    known.append((event.at_ms, event.generation))
            case Emptied():
                emptied_ms.append(event.at_ms)
            case Committed(error=None):
                if first_commit_ms is None:
                    first_commit_ms = event.at_ms
                if event.generation < 0:
                    continue
                there = [each for at_ms, each in known if at_ms < event.sent_ms]
                if there and there[-1] > event.generation:
                    what = (
                        f"consumer {event.consumer} committed in generation {event.generation} at "
                        f"{event.sent_ms} ms, though the group was in generation {there[-1]}"
                    )
                    yield Anomaly(Kind.stale_generation, event.offsets[0][0], what)


def _asked_before(event: Synced, at_ms: int) -> bool:
    return event.sent_ms is not None and event.sent_ms < at_ms


def _begins_again(
    event: Synced, owners: dict[tuple[int, int], int], newest: dict[int, int], highest: int
) -> bool:
    """Whether the generation is another one than before with this number, or followed it.

    `highest` is the highest known one: a lower one may also be the answer of a coordinator that was
    replaced.
    """
    return (
        event.generation < newest.get(event.consumer, -1)
        or (event.generation < highest and not event.by_deposed)
        or any(
            owners.get((event.generation, partition), event.consumer) != event.consumer
            for partition in event.partitions
        )
    )


def _synced(
    event: Synced, owners: dict[tuple[int, int], int], newest: dict[int, int]
) -> Iterator[Anomaly]:
    who = f"consumer {event.consumer} at {event.at_ms} ms"
    former = newest.get(event.consumer, -1)
    if event.generation < former and not event.by_deposed:
        what = f"{who} was told generation {event.generation} after {former}"
        yield Anomaly(Kind.stale_generation, -1, what)
    newest[event.consumer] = max(former, event.generation)
    for partition in event.partitions:
        owner = owners.setdefault((event.generation, partition), event.consumer)
        if owner != event.consumer:
            what = f"consumers {owner} and {event.consumer} own it in generation {event.generation}"
            yield Anomaly(Kind.two_owners, partition, what)
