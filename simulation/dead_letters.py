"""The dead letters of a simulated cluster's share group (KIP-1191), held against what became of its
records.

    at least one    each record that a member rejected, and was told so, and each that was delivered
                    as often as may be and that nobody accepted, has a dead letter, unless a broker
                    has said that it gives it up
    none too many   only such records have one
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ottla.cluster.dead_letters import DeadLetters
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.share.dead_letter import PREFIX, Origin
from ottla.share.record_state import AckType
from ottla.share.share_partition import Letter
from simulation.cluster import TOPIC, Cluster
from simulation.share_ledger import Record, ShareLedger
from simulation.violation import Violation

LETTERS: Final = "dlq.x"
PARTITIONS: Final = 2

Key = tuple[int, int]
"""Partition and offset of a record."""


class LetterCheck:
    """Of the group's records, of which the ledger knows what became."""

    def __init__(self, cluster: Cluster, ledger: ShareLedger) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self.given_up: set[Key] = set()

    async def create(self) -> None:
        """Create the topic of the dead letters."""
        await self._cluster.operator.create(
            LETTERS,
            PARTITIONS,
            self._cluster.factor,
            errors_deadletterqueue_group_enable="true",
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it lasts, it hears of the dead letters that brokers give up."""
        right = DeadLetters._give_up
        given_up = self.given_up

        def give_up(
            self: DeadLetters, origin: Origin, letters: Sequence[Letter], at: int, error: Any
        ) -> None:
            for each in letters:
                offsets = range(max(each.first, at), each.last + 1)
                given_up.update((origin.partition, offset) for offset in offsets)
            right(self, origin, letters, at, error)

        setattr(DeadLetters, "_give_up", give_up)  # noqa: B010 - mypy takes it for another type
        try:
            yield
        finally:
            setattr(DeadLetters, "_give_up", right)  # noqa: B010

    def check(self, partitions: Sequence[int]) -> None:
        """What holds once the group is through with all records of these partitions of the topic.
        Raises Violation."""
        if self._cluster.invariants.forgiven(LETTERS):
            return
        written = self._written()
        for key, record in sorted(self._ledger.records.items()):
            index, offset = key
            if index not in partitions:
                continue
            if must_have(record, self._ledger.limit) and key not in written | self.given_up:
                raise Violation(f"{TOPIC}-{index}: offset {offset} has no dead letter")
            if key in written and not may_have(record, self._ledger.limit):
                raise Violation(f"{TOPIC}-{index}: offset {offset} has a dead letter for no reason")

    def _written(self) -> set[Key]:
        found: set[Key] = set()
        for index in range(PARTITIONS):
            state = self._cluster.state(LETTERS, index)
            node = None if state is None else self._cluster.brokers[state["leader"]].node
            partition = None if node is None else node.partitions.get(LETTERS, index)
            if partition is None:
                raise Violation(f"{LETTERS}-{index} has no leader at the end")
            log = partition.log
            offset = log.start_offset
            while offset < partition.high_watermark:
                data = memoryview(log.read(offset, max_bytes=1 << 20).read())
                position = 0
                for header in iterate_headers(data):
                    for record in iterate_records(data[position:], header):
                        headers = dict(record.headers)
                        numbers = (headers[PREFIX + name] for name in ("partition", "offset"))
                        of, at = (int(each or b"") for each in numbers)
                        found.add((of, at))
                    position += header.size_bytes
                    offset = header.next_offset
        return found


def must_have(record: Record, limit: int) -> bool:
    """The record must have a dead letter."""
    if record.over_as is AckType.REJECT:
        return True
    return record.over_as is None and not record.unknown and record.most_acquired >= limit


def may_have(record: Record, limit: int) -> bool:
    """There is a reason for a dead letter of the record."""
    return record.over_as is AckType.REJECT or record.unknown > 0 or record.most_acquired >= limit
