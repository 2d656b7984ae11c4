"""Checks the consumers of a group: no skipped record, no step back, no lost commit. Pure.

Within one assignment of a partition, a consumer polls consecutive offsets, but for those without a
committed record (markers and aborted records). The first offset after
an assignment is the group's committed offset: not lower than the last acknowledged commit, and not
higher than any requested commit. A paused consumer learns late that it lost a partition, so two
owners at the same time are not an anomaly by themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faults.anomaly import Anomaly, Kind, Policy
from faults.elections import Elections
from faults.history import Assigned, Committed, Event, FinalCommitted, Polled, Revoked


@dataclass(slots=True)
class Group:
    """The state of the group at the current event of the history."""

    shown: Mapping[int, Sequence[int]] | None
    """The offsets with committed records by partition, in order; None if all have one."""
    next_offset: dict[tuple[int, int], int] = field(default_factory=dict)
    """By (consumer, partition); missing until the first poll of an assignment."""
    floor: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    ceiling: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    floor_at_assignment: dict[tuple[int, int], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    """By (consumer, partition)."""
    epochs: dict[tuple[int, int], int] = field(default_factory=dict)
    """By (partition, offset): the newest leader epoch in which a polled record was appended."""

    def is_skipped(self, partition: int, start: int, end: int) -> bool:
        """Whether a record lies from `start` to `end` (exclusive)."""
        if self.shown is None:
            return start < end
        offsets = self.shown.get(partition, ())
        return bisect_left(offsets, start) < bisect_left(offsets, end)


def check(
    events: Sequence[Event],
    elections: Elections,
    policy: Policy,
    shown: Mapping[int, Sequence[int]] | None = None,
) -> list[Anomaly]:
    """`shown`: see `Group`."""
    group = Group(shown)
    # A commit counts as requested from the time it was sent, which is before its own event.
    for event in events:
        if isinstance(event, Committed):
            for partition, offset in event.offsets:
                group.ceiling[partition] = max(group.ceiling[partition], offset)
    found: list[Anomaly] = []
    for event in events:
        match event:
            case Assigned():
                for partition in event.partitions:
                    key = (event.consumer, partition)
                    group.next_offset.pop(key, None)
                    # A replaced coordinator answers OffsetFetch from memory, like Kafka's.
                    floor = 0 if event.by_deposed else group.floor[partition]
                    group.floor_at_assignment[key] = floor
            case Revoked():
                for partition in event.partitions:
                    group.next_offset.pop((event.consumer, partition), None)
            case Polled():
                found += _polled(group, event, elections, policy)
                offsets = ((event.partition, offset) for offset, _ in event.records)
                group.epochs.update(zip(offsets, event.leader_epochs, strict=False))
            case Committed(error=None):
                for partition, offset in event.offsets:
                    group.floor[partition] = max(group.floor[partition], offset)
            case FinalCommitted():
                found += _final(group, event, elections, policy)
    return found


def _polled(group: Group, event: Polled, elections: Elections, policy: Policy) -> Iterator[Anomaly]:
    key = (event.consumer, event.partition)
    who = f"consumer {event.consumer} at {event.at_ms} ms"
    for offset, _ in event.records:
        expected = group.next_offset.get(key)
        group.next_offset[key] = offset + 1
        if expected is None:
            yield from _first(group, event, offset, elections, policy)
        elif group.is_skipped(event.partition, expected, offset):
            what = f"{who} went from offset {expected - 1} to {offset}"
            yield Anomaly(Kind.poll_skip, event.partition, what)
        elif offset < expected:
            because = _excuse_cut(group, elections, policy, event, event.partition, expected)
            what = f"{who} went back from offset {expected - 1} to {offset}"
            yield Anomaly(Kind.nonmonotonic_poll, event.partition, what, because)


def _first(
    group: Group, event: Polled, offset: int, elections: Elections, policy: Policy
) -> Iterator[Anomaly]:
    who = f"consumer {event.consumer} at {event.at_ms} ms"
    floor = group.floor_at_assignment[event.consumer, event.partition]
    ceiling = group.ceiling[event.partition]
    if offset < floor:
        because = _excuse_cut(group, elections, policy, event, event.partition, floor)
        what = f"{who} began at offset {offset}, though {floor} was committed"
        yield Anomaly(Kind.lost_commit, event.partition, what, because)
    elif group.is_skipped(event.partition, ceiling, offset):
        what = f"{who} began at offset {offset}, though at most {ceiling} was committed"
        yield Anomaly(Kind.poll_skip, event.partition, what)


def _excuse_cut(
    group: Group,
    elections: Elections,
    policy: Policy,
    event: Polled | FinalCommitted,
    partition: int,
    next_offset: int,
) -> str | None:
    """If an unclean election truncated the consumer's position, it restarts at the offset that
    auto.offset.reset gives."""
    if policy is not Policy.unclean:
        return None
    because = elections.excuse(policy, partition, next_offset - 1, 0)
    epoch = group.epochs.get((partition, next_offset - 1))
    if because is None and epoch is not None:
        because = elections.led_uncleanly(partition, epoch, event.at_ms)
    return because


def _final(
    group: Group, event: FinalCommitted, elections: Elections, policy: Policy
) -> Iterator[Anomaly]:
    """A member whose position was truncated commits the lower one at which it restarted."""
    for partition, offset in event.offsets:
        floor = group.floor[partition]
        if max(offset, 0) < floor:
            because = _excuse_cut(group, elections, policy, event, partition, floor)
            what = f"the group ended at offset {offset}, though {floor} was committed"
            yield Anomaly(Kind.lost_commit, partition, what, because)
