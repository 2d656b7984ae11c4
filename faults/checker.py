"""Checks a history against Kafka's guarantees. Pure.

Modelled on Jepsen's workload for Kafka and Redpanda: each offset has one value, each value has one
offset, each acknowledged value is in the final read, and no consumer skips or goes back. The topics
here have no compaction, so without transactions offsets have no gaps at all. Transactions leave
gaps, where markers and aborted records are; `transactions` checks what is read of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from faults import consumers, generations, transactions
from faults.anomaly import Anomaly, Kind, Policy, Verdict
from faults.elections import Elections
from faults.history import (
    Acknowledged,
    Event,
    FinalRead,
    Polled,
    Refused,
    Sent,
    parts_of,
)


@dataclass(slots=True)
class Facts:
    """A history, looked up by value and by (partition, offset)."""

    sent: dict[str, Sent] = field(default_factory=dict)
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)
    polled: dict[tuple[int, int], dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """When the group first read each value at each offset."""
    epochs: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """By (partition, offset, value): the newest leader epoch in which it was seen, if known."""
    final: dict[int, FinalRead] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Sequence[Event]) -> Facts:
        facts = cls()
        for event in events:
            match event:
                case Sent():
                    facts.sent[event.value] = event
                case Acknowledged():
                    facts.acknowledged[event.value] = event
                    facts._seen(event.partition, event.offset, event.value, event.leader_epoch)
                case Refused():
                    facts.refused[event.value] = event
                case FinalRead():
                    facts.final[event.partition] = event
                case Polled():
                    for offset, value in event.records:
                        facts.polled[event.partition, offset].setdefault(value, event.at_ms)
                    for (offset, value), epoch in zip(
                        event.records, event.leader_epochs, strict=False
                    ):
                        facts._seen(event.partition, offset, value, epoch)
        return facts

    def _seen(self, partition: int, offset: int, value: str, epoch: int) -> None:
        record = (partition, offset, value)
        self.epochs[record] = max(epoch, self.epochs.get(record, -1))

    def first_epoch(self, records: Iterable[tuple[int, int, str]]) -> int:
        """The oldest known leader epoch of any of these records; -1 if none is known."""
        known = (self.epochs.get(record, -1) for record in records)
        return min((epoch for epoch in known if epoch >= 0), default=-1)

    @property
    def is_transactional(self) -> bool:
        return any(sent.transaction is not None for sent in self.sent.values())

    def read_records(self) -> Iterator[tuple[int, int, str]]:
        """(partition, offset, value) of every read, by the group or by the final read."""
        for (partition, offset), values in self.polled.items():
            for value in values:
                yield partition, offset, value
        for partition, final in self.final.items():
            for offset, value in final.records:
                if value not in self.polled.get((partition, offset), ()):
                    yield partition, offset, value


def check(events: Sequence[Event], policy: Policy) -> Verdict:
    """All anomalies of the history, each with the policy's excuse if it has one."""
    facts = Facts.of(events)
    elections = Elections(events)
    found: list[Anomaly] = []
    found += _lost(facts, elections, policy)
    found += _never_written(facts)
    found += _two_values(facts, elections, policy)
    found += _twice(facts, elections, policy)
    found += _final_order(facts, elections, policy)
    found += transactions.check(events)
    found += consumers.check(events, elections, policy, _shown(facts))
    found += generations.check(events)
    return Verdict(tuple(found))


def _shown(facts: Facts) -> dict[int, list[int]] | None:
    """The offsets with committed records by partition; None if all have one."""
    if not facts.is_transactional:
        return None
    shown: dict[int, set[int]] = defaultdict(set)
    for partition, offset, _ in facts.read_records():
        shown[partition].add(offset)
    return {partition: sorted(offsets) for partition, offsets in shown.items()}


def _lost(facts: Facts, elections: Elections, policy: Policy) -> Iterator[Anomaly]:
    """Values that were acknowledged, or even read, but are missing from the final read.

    Without a final read of the partition (an aborted run), every value acknowledged below the
    highest polled offset must have been polled.
    """
    last = {
        partition: {value for _, value in final.records} for partition, final in facts.final.items()
    }
    offsets = {
        partition: {offset for offset, _ in final.records}
        for partition, final in facts.final.items()
    }
    polled: dict[int, set[str]] = defaultdict(set)
    highest: dict[int, int] = defaultdict(lambda: -1)
    for (partition, offset), values in facts.polled.items():
        polled[partition].update(values)
        highest[partition] = max(highest[partition], offset)
    for value, ack in facts.acknowledged.items():
        if value in facts.sent and facts.sent[value].transaction is not None:
            continue  # the outcome of the transaction counts
        seen = last.get(ack.partition)
        if seen is None:
            if ack.offset < 0 or ack.offset > highest[ack.partition]:
                continue
            seen = polled[ack.partition]
        if value not in seen:
            taken = ack.offset in offsets.get(ack.partition, ())
            because = elections.excuse(
                policy,
                ack.partition,
                ack.offset,
                ack.at_ms,
                is_taken=taken,
                leader_epoch=facts.first_epoch([(ack.partition, ack.offset, value)]),
            )
            what = f"{value} was acknowledged at offset {ack.offset} ({ack.at_ms} ms) and is gone"
            yield Anomaly(Kind.lost_write, ack.partition, what, because)
    for (partition, offset), values in facts.polled.items():
        for value, at_ms in values.items():
            if partition in last and value not in last[partition]:
                # Consumers read only committed records, and acks=1 loses only uncommitted ones.
                epoch = facts.first_epoch([(partition, offset, value)])
                because = _excuse_unclean(elections, policy, partition, offset, at_ms, epoch)
                what = f"{value} was read at offset {offset} ({at_ms} ms) and is gone"
                yield Anomaly(Kind.lost_read, partition, what, because)


def _excuse_unclean(
    elections: Elections, policy: Policy, partition: int, offset: int, at_ms: int, epoch: int
) -> str | None:
    if policy is not Policy.unclean:
        return None
    return elections.excuse(policy, partition, offset, at_ms, leader_epoch=epoch)


def _never_written(facts: Facts) -> Iterator[Anomaly]:
    for partition, offset, value in facts.read_records():
        sent = facts.sent.get(value)
        if sent is None or sent.partition != partition:
            what = f"{value} was read at offset {offset}, and was not sent there"
            yield Anomaly(Kind.phantom_read, partition, what)
        elif value in facts.refused:
            error = facts.refused[value].error
            what = f"{value} was read at offset {offset}, though it was refused: {error}"
            yield Anomaly(Kind.aborted_read, partition, what)


def _two_values(facts: Facts, elections: Elections, policy: Policy) -> Iterator[Anomaly]:
    """Acknowledgements, polls and the final read must agree on the value at an offset."""
    at: dict[tuple[int, int], dict[str, int | None]] = defaultdict(dict)
    for record, first_read in facts.polled.items():
        at[record].update(first_read)
    read = {record: set(values) for record, values in facts.polled.items()}
    for partition, final in facts.final.items():
        for offset, value in final.records:
            at[partition, offset].setdefault(value, None)
            read.setdefault((partition, offset), set()).add(value)
    for value, ack in facts.acknowledged.items():
        if ack.offset >= 0:
            at[ack.partition, ack.offset].setdefault(value, ack.at_ms)
    for (partition, offset), values in sorted(at.items()):
        if len(values) == 1:
            continue
        # With acks=1 two leaders may assign one offset, but only one of the records is ever read.
        excused = policy is Policy.unclean or len(read.get((partition, offset), ())) <= 1
        times = [at_ms for at_ms in values.values() if at_ms is not None]
        because = None
        if excused:
            last = dict(facts.final[partition].records) if partition in facts.final else {}
            gone = [(offset, value, at_ms) for value, at_ms in values.items()
                    if at_ms is not None and value != last.get(offset)]  # fmt: skip
            because = elections.excuse(
                policy, partition, offset, min(times), is_taken=True
            ) or _all_excused(facts, elections, policy, partition, gone)
        what = f"offset {offset} was seen with {', '.join(sorted(values))}"
        yield Anomaly(Kind.two_values, partition, what, because)


def _all_excused(
    facts: Facts,
    elections: Elections,
    policy: Policy,
    partition: int,
    gone: Iterable[tuple[int, str, int]],
) -> str | None:
    """Why each of these (offset, value, when it was seen) is no longer there; None if one may not.

    An unclean leader may bring back a record that is older than the one that was committed.
    """
    because = None
    for offset, value, at_ms in gone:
        epoch = facts.first_epoch([(partition, offset, value)])
        because = elections.excuse(policy, partition, offset, at_ms, leader_epoch=epoch)
        if because is None:
            return None
    return because


def _twice(facts: Facts, elections: Elections, policy: Policy) -> Iterator[Anomaly]:
    """A value seen at two offsets: written twice, or moved.

    A retry without idempotence may write a duplicate. After an unclean election, a record retried
    because its response was lost may get another offset than a consumer saw before.
    """
    records: dict[str, dict[int, int]] = defaultdict(dict)
    partition_of: dict[str, int] = {}
    for (partition, offset), values in facts.polled.items():
        for value, at_ms in values.items():
            records[value].setdefault(offset, at_ms)
            partition_of[value] = partition
    finals: dict[str, set[int]] = defaultdict(set)
    for partition, final in facts.final.items():
        for offset, value in final.records:
            finals[value].add(offset)
            records[value].setdefault(offset, final.at_ms)
            partition_of[value] = partition
    for value, ack in facts.acknowledged.items():
        if ack.offset >= 0:
            records[value].setdefault(ack.offset, ack.at_ms)
            partition_of[value] = ack.partition
    for value, offsets in records.items():
        if len(offsets) == 1:
            continue
        because = None
        if policy is Policy.acks_1:
            because = "a retry without idempotence may write twice"
        elif len(finals[value]) <= 1:
            partition = partition_of[value]
            gone = [(each, value, at_ms) for each, at_ms in offsets.items()
                    if each not in finals[value]]  # fmt: skip
            because = elections.excuse(
                policy, partition, min(offsets), min(offsets.values())
            ) or _all_excused(facts, elections, policy, partition, gone)
        what = f"{value} was seen at offsets {', '.join(map(str, sorted(offsets)))}"
        yield Anomaly(Kind.duplicate, partition_of[value], what, because)


def _final_order(facts: Facts, elections: Elections, policy: Policy) -> Iterator[Anomaly]:
    """In the final read, offsets are consecutive and each producer's values are in order.

    The first occurrence of a value counts: a retry that wrote it again (acks=1) is a duplicate.
    A retry after the leader has changed (acks=1) may be behind later records.
    """
    for partition, final in facts.final.items():
        expected = final.start
        last: dict[int, int] = {}
        seen: set[str] = set()
        for offset, value in final.records:
            if offset < expected or (offset > expected and not facts.is_transactional):
                what = f"offset {offset} came after {expected - 1}"
                yield Anomaly(Kind.offset_gap, partition, what)
            expected = offset + 1
            if value not in facts.sent or value in seen:
                continue
            seen.add(value)
            producer, sequence = parts_of(value)
            if sequence < last.get(producer, -1):
                what = f"{value} at offset {offset} came after {producer}-{last[producer]}"
                because = elections.moved(policy, partition, offset)
                yield Anomaly(Kind.reordered, partition, what, because)
            last[producer] = max(sequence, last.get(producer, -1))
        if expected != final.end and not facts.is_transactional:
            what = f"the final read ended at {expected} and not at {final.end}"
            yield Anomaly(Kind.offset_gap, partition, what)
