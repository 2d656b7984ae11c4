"""Moving what a group has committed: the plan, what it means for the group, and its execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.client.admin.committed_offsets import Commit, commit_offsets
from ottla.client.admin.offsets import end_offsets, first_offsets, offsets_at
from ottla.client.admin.share_offsets import alter_share_offsets
from ottla.client.client import Client
from ottla.client.errors import ClientError, reason_of
from ottla.client.topic_partition import TopicPartition
from ottla.wording.plural import plural


@dataclass(frozen=True, slots=True)
class Target:
    """The requested target; exactly one field is set."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    at_ms: int | None = None
    shift: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A partition of a plan; `note`: why it is not as it was asked for."""

    topic: str
    partition: int
    before: int | None
    after: int
    note: str


def plan(
    client: Client,
    target: Target,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, Commit],
) -> list[Move]:
    """Each partition with its old and new offset; new offsets are limited to the log's range."""
    first, end = first_offsets(client, partitions), end_offsets(client, partitions)
    by_time: dict[TopicPartition, int] = {}
    if target.at_ms is not None:
        by_time = offsets_at(client, partitions, target.at_ms)
    moves: list[Move] = []
    for key in partitions:
        before = committed[key].offset if key in committed else None
        remark = ""
        if target.earliest:
            after = first[key]
        elif target.latest:
            after = end[key]
        elif target.at_ms is not None:
            after = by_time[key]
        elif target.offset is not None:
            after = target.offset
        else:
            assert target.shift is not None
            after = (first[key] if before is None else before) + target.shift
            if before is None:
                remark = f"no offset was committed; shifted from the first offset, {first[key]}."
        moves.append(move(key, before, after, first[key], end[key], remark))
    return moves


def plan_to(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, Commit],
) -> list[Move]:
    """The same for a given offset of each partition."""
    partitions = sorted(wanted)
    first, end = first_offsets(client, partitions), end_offsets(client, partitions)
    return [
        move(
            key,
            committed[key].offset if key in committed else None,
            wanted[key],
            first[key],
            end[key],
        )
        for key in partitions
    ]


def move(
    key: TopicPartition, before: int | None, after: int, first: int, end: int, remark: str = ""
) -> Move:
    """One partition of a plan, with the new offset inside its log."""
    kept = min(max(after, first), end)
    if kept != after:
        edge = "first offset" if kept > after else "end"
        remark = f"{after} is outside the log; moved to its {edge}, {kept}."
    return Move(*key, before, kept, remark)


def moved_topics(moves: Sequence[Move]) -> list[str]:
    """The topics of which a partition gets another offset."""
    return sorted({move.topic for move in moves if move.before != move.after})


def consequence(moves: Sequence[Move]) -> str:
    """What the group's next members read again or never read, in a sentence; `""` for nothing.

    Offsets are counted: on a compacted topic, or one with transactions, there are fewer records.
    """
    steps = [move.after - move.before for move in moves if move.before is not None]
    again = -sum(step for step in steps if step < 0)
    skipped = sum(step for step in steps if step > 0)
    parts = [f"{plural(again, 'record')} read again"] if again else []
    parts += [f"{plural(skipped, 'record')} skipped"] if skipped else []
    return f"{' and '.join(parts)}." if parts else ""


def commit_moves(
    client: Client, group: str, moves: Sequence[Move], *, is_share: bool = False
) -> None:
    """Carry out the plan. Raises ClientError that names the partitions which could not be moved."""
    change = alter_share_offsets if is_share else commit_offsets
    refused = change(
        client, group, {TopicPartition(move.topic, move.partition): move.after for move in moves}
    )
    if refused:
        reason = reason_of(next(iter(refused.values())))
        raise ClientError(f"not moved: {', '.join(map(str, refused))}: {reason}.")
