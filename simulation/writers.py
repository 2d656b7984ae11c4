"""Clients that write records in transactions, and the readers of what they write.

For each transactional id there are producers that take over from each other, and a ledger; for each
partition a read_committed and a read_uncommitted reader, for each transactional id one of its
group's offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from simulation.cluster import OFFSETS, TOPIC, TRANSACTIONS, WRITTEN, Cluster
from simulation.connection import Connections, NoAnswerError, RefusedError
from simulation.process import Process
from simulation.producer import Producer
from simulation.record_ledger import PartitionKey, RecordLedger
from simulation.record_reader import (
    POLLS_PER_LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    RecordReader,
)
from simulation.record_transactions import RecordTransactions, Versions
from simulation.transactional_offsets import TransactionalOffsets
from simulation.violation import Violation

VERSIONS: Final = (Versions(12, 5, 5), Versions(11, 3, 4), Versions(9, 2, 3))
"""Of transaction version 2; below 2 with and without TRANSACTION_ABORTABLE."""
CHANGES: Final = 0.15
"""How often a transactional id gets a client of another version."""
SHORT_LIVED: Final = 0.1
"""How often a transaction writes to a topic that is about to be deleted, if there is one."""
HOSTS: Final = "10.0.8."
SETTLES_WITHIN_MS: Final = 10_000
OFFSETS_SETTLE_WITHIN_MS: Final = 40_000
OFFSET_READ_EVERY_S: Final = 0.6


@dataclass(slots=True)
class _Writer:
    """One transactional id."""

    versions: Versions
    ledger: RecordLedger
    producers: list[Producer] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    """One for each producer."""


class Writers:
    """Starts the clients, lets producers take over, and judges their ledgers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} writers")
        self._hosts = 0
        self._has_stopped = False
        self._anomalies: list[str] = []
        versions: Sequence[Versions] = (VERSIONS[0], self._random.choice(VERSIONS[1:]))
        count = cluster.size.writers
        if count < len(versions):
            versions = self._random.sample(versions, count)
        self._writers = [
            _Writer(each, self._ledger(f"writer-{number}"))
            for number, each in enumerate(versions, start=1)
        ]
        self._once: list[_Writer] = []
        """Those of one transaction each."""
        self._ledgers = {each.ledger.name: each.ledger for each in self._writers}
        self._readers: list[RecordReader] = []

    @property
    def _all(self) -> list[_Writer]:
        return self._writers + self._once

    def _ledger(self, name: str) -> RecordLedger:
        cluster = self._cluster
        return RecordLedger(name, cluster.transaction_timeout_ms, lambda: cluster.clock_spread_ms)

    @property
    def committed(self) -> list[int]:
        """How many transactions of each transactional id are known to be committed."""
        return [each.ledger.committed for each in self._writers]

    @property
    def is_forgiven(self) -> bool:
        """Committed records, of the topic or of the coordinators, may be lost."""
        invariants = self._cluster.invariants
        return bool(invariants.forgiven(WRITTEN) or invariants.forgiven(TRANSACTIONS))

    @property
    def _are_offsets_forgiven(self) -> bool:
        """Committed offsets may be lost."""
        return bool(self._cluster.invariants.forgiven(OFFSETS))

    def start(self) -> None:
        for index in range(self._cluster.written_partitions):
            self._start_readers((WRITTEN, index))
        for writer in self._writers:
            self._start_producer(writer)
            self._cluster.loop.start_in(self._process(), partial(self._read_offsets, writer.ledger))

    @property
    def have_stopped(self) -> bool:
        """All producers that are alive have ended their transactions."""
        return all(
            producer.has_stopped or not process.is_alive
            for writer in self._all
            for producer, process in zip(writer.producers, writer.processes, strict=True)
        )

    def stop(self) -> None:
        """Producers end their transactions, and no other one takes over."""
        self._has_stopped = True
        for writer in self._writers:
            for producer in writer.producers:
                producer.stopping = True

    def add_partition(self) -> None:
        """The topic has another partition."""
        partition_key = (WRITTEN, self._cluster.written_partitions)
        self._cluster.written_partitions += 1
        self._start_readers(partition_key)

    # Readers.

    def _start_readers(self, partition_key: PartitionKey) -> None:
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
            connections = Connections(f"record reader {partition_key[1]}", self._cluster.addresses)
            reader = RecordReader(
                partition_key,
                isolation,
                connections,
                self._ledgers,
                self._anomalies.append,
                self._start_of,
                polls_per_latest=1 if self._cluster.logs else POLLS_PER_LATEST,
            )
            self._readers.append(reader)
            self._cluster.loop.start_in(self._process(), reader.run)

    def _start_of(self, partition_key: PartitionKey) -> int:
        account = self._cluster.invariants.account(*partition_key)
        return 0 if account is None else account.deleted_before

    def deleting_records(self, partition_key: PartitionKey, before: int) -> None:
        """DeleteRecords is about to be asked for."""
        for ledger in self._ledgers.values():
            ledger.deleting(partition_key, before)

    def pause(self, *, is_paused: bool) -> None:
        """Stop the producers where they are, and let them go on; not those of one transaction."""
        for writer in self._writers:
            for process in writer.processes:
                process.is_paused = is_paused

    def write_once(self, partition_key: PartitionKey) -> tuple[Producer, Process]:
        """A new transactional id has one transaction in one partition."""
        name = f"once-{len(self._once) + 1}"
        versions = self._random.choice(VERSIONS)
        writer = _Writer(versions, self._ledger(name))
        self._once.append(writer)
        self._ledgers[name] = writer.ledger
        producer = self._producer(writer, name, versions, lambda: [partition_key])
        self._cluster.note(f"producer {name} of {versions} starts")
        self._cluster.loop.start_in(writer.processes[-1], producer.run_once)
        return producer, writer.processes[-1]

    def _offsets_of(self, name: str) -> TransactionalOffsets:
        return self._offsets_over(Connections(name, self._cluster.addresses))

    def _offsets_over(self, connections: Connections) -> TransactionalOffsets:
        return TransactionalOffsets(connections, TOPIC, self._cluster.coordinator_of)

    async def _read_offsets(self, ledger: RecordLedger) -> None:
        """Read the group's offset as consumers that require stable ones."""
        offsets = self._offsets_of(f"reader of {ledger.group}")
        last = 0
        while True:
            floor = max(ledger.offset_floor, last)
            try:
                last = await offsets.stable(ledger.group)
                ledger.read_offset(last, floor)
            except (NoAnswerError, RefusedError):
                pass  # read again after a pause
            await asyncio.sleep(OFFSET_READ_EVERY_S)

    # Producers.

    def _process(self) -> Process:
        self._hosts += 1
        return Process(f"{HOSTS}{self._hosts}")

    def _partitions(self) -> list[PartitionKey]:
        partitions = [(WRITTEN, index) for index in range(self._cluster.written_partitions)]
        short = self._cluster.short_lived
        if short is not None and self._random.random() < SHORT_LIVED:
            return [(short, 0)]
        return partitions

    def _leader_epoch(self, partition_key: PartitionKey) -> int:
        """-1: the topic is deleted."""
        state = self._cluster.state(*partition_key)
        return -1 if state is None else int(state["leader_epoch"])

    def _start_producer(self, writer: _Writer) -> None:
        number = len(writer.producers) + 1
        name = f"{writer.ledger.name}-{number}"
        random = Random(f"{self._cluster.seed} {name}")
        versions = writer.versions
        if random.random() < CHANGES:
            versions = random.choice(VERSIONS)
        producer = self._producer(writer, name, versions, self._partitions, random)
        self._cluster.note(f"producer {name} of {versions} starts")
        self._cluster.loop.start_in(writer.processes[-1], producer.run)
        pause_s = self._cluster.pace.s(2 + self._random.random() * 6)
        self._cluster.loop.call_later(pause_s, self._take_over, writer)

    def _producer(
        self,
        writer: _Writer,
        name: str,
        versions: Versions,
        partitions: Callable[[], Sequence[PartitionKey]],
        random: Random | None = None,
    ) -> Producer:
        """A producer and its process, which are not started."""
        connections = Connections(name, self._cluster.addresses)
        transactions = RecordTransactions(
            connections,
            writer.ledger,
            partitions,
            self._leader_epoch,
            self._cluster.is_behind,
            self._cluster.now_ms,
            random or Random(f"{self._cluster.seed} {name}"),
            versions,
            self._offsets_over(connections),
            self._cluster.pace,
        )
        producer = Producer(transactions)
        writer.producers.append(producer)
        writer.processes.append(self._process())
        return producer

    def _take_over(self, writer: _Writer) -> None:
        if self._has_stopped:
            return
        if self._random.random() < 0.5:
            self._cluster.note(f"the producer of {writer.ledger.name} is killed")
            self._cluster.loop.forget(writer.processes[-1])
            self._cluster.loop.network.died(writer.processes[-1])
        self._start_producer(writer)

    # The end.

    async def settle(self) -> None:
        """After `stop`: no transaction may be stuck. Raises Violation."""
        if self.is_forgiven:
            return
        until_ms = self._cluster.loop.now_ms + SETTLES_WITHIN_MS + self._cluster.clock_spread_ms
        for reader in self._readers:
            while True:
                is_read = await reader.poll(0)
                if is_read and reader.offset == reader.stable_offset == reader.high_watermark:
                    break
                if self._cluster.loop.now_ms > until_ms:
                    raise Violation(
                        f"a transaction is stuck in {reader.partition_key}: "
                        f"read to {reader.offset}, stable "
                        f"to {reader.stable_offset} of {reader.high_watermark}"
                    )
        partitions = {reader.partition_key for reader in self._readers}
        for writer in self._all:
            if not self._are_offsets_forgiven:
                await self._settle_offsets(writer.ledger)
            writer.ledger.settle(partitions)

    async def _settle_offsets(self, ledger: RecordLedger) -> None:
        offsets = self._offsets_of(f"offsets of {ledger.name}")
        ledger.settle_offset(await self._settled(offsets, ledger.group))
        for number in ledger.own_groups:
            ledger.settle_own_offset(number, await self._settled(offsets, ledger.own_group(number)))

    async def _settled(self, offsets: TransactionalOffsets, group: str) -> int:
        until_ms = self._cluster.loop.now_ms + OFFSETS_SETTLE_WITHIN_MS
        while True:
            try:
                return await offsets.stable(group)
            except (NoAnswerError, RefusedError) as error:
                if self._cluster.loop.now_ms > until_ms:
                    raise Violation(f"the offset of {group} stays unstable: {error}") from None
            await asyncio.sleep(0.3)

    def judge(self) -> None:
        """Raises Violation for the first anomaly that lost records do not explain."""
        if self.is_forgiven:
            return
        found = [what for writer in self._all for what in writer.ledger.anomalies]
        if not self._are_offsets_forgiven:
            found += [what for writer in self._all for what in writer.ledger.offset_anomalies]
        for what in self._anomalies + found:
            raise Violation(what)
