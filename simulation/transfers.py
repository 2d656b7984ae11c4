"""The transactional clients of a simulated cluster: for each transactional id producers that take
over from each other, a reader, and a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from simulation.cluster import OFFSETS, OFFSETS_PARTITIONS, TOPIC, TRANSACTIONS, Cluster
from simulation.connection import NoAnswerError, RefusedError
from simulation.ledger import Ledger
from simulation.process import Process
from simulation.producer import Producer
from simulation.transactions import OffsetTransactions, StableReader, groups_of
from simulation.violation import Violation

VERSIONS: Final = (5, 3)
"""Of TxnOffsetCommit: one transactional id with clients of transaction version 2, one before."""
SETTLES_WITHIN_MS: Final = 40_000


@dataclass(slots=True)
class _Transfer:
    """One transactional id."""

    name: str
    version: int
    groups: tuple[str, str]
    ledger: Ledger
    producers: list[Producer] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    """One for each producer."""


class Transfers:
    """Starts the clients, lets producers take over, and judges their ledgers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} transfers")
        self._hosts = 0
        self._has_stopped = False
        self._transfers: list[_Transfer] = []
        versions: Sequence[int] = VERSIONS
        count = cluster.size.transfers
        if count < len(versions):
            versions = self._random.sample(versions, count)
        for number, version in enumerate(versions, start=1):
            name = f"transfer-{number}"
            groups = groups_of(name, OFFSETS_PARTITIONS)
            self._transfers.append(_Transfer(name, version, groups, Ledger(name)))

    @property
    def committed(self) -> list[int]:
        """How many transactions of each transactional id are known to be committed."""
        return [each.ledger.committed for each in self._transfers]

    def start(self) -> None:
        for transfer in self._transfers:
            self._start_producer(transfer)
            reader = self._reader(transfer)
            self._cluster.loop.start_in(self._process(), reader.run)

    @property
    def have_stopped(self) -> bool:
        """All producers that are alive have ended their transactions."""
        return all(
            producer.has_stopped or not process.is_alive
            for transfer in self._transfers
            for producer, process in zip(transfer.producers, transfer.processes, strict=True)
        )

    def stop(self) -> None:
        """Producers end their transactions, and no other one takes over."""
        self._has_stopped = True
        for transfer in self._transfers:
            for producer in transfer.producers:
                producer.stopping = True

    def _process(self) -> Process:
        self._hosts += 1
        return Process(f"10.0.7.{self._hosts}")

    def _reader(self, transfer: _Transfer) -> StableReader:
        return StableReader(
            f"reader of {transfer.name}",
            transfer.groups,
            TOPIC,
            self._cluster.addresses,
            transfer.ledger,
            Random(f"{self._cluster.seed} reader of {transfer.name}"),
            self._cluster.coordinator_of,
        )

    def _start_producer(self, transfer: _Transfer) -> None:
        number = len(transfer.producers) + 1
        transactions = OffsetTransactions(
            f"{transfer.name}-{number}",
            transfer.groups,
            TOPIC,
            self._cluster.addresses,
            transfer.ledger,
            Random(f"{self._cluster.seed} {transfer.name} {number}"),
            self._cluster.coordinator_of,
            transfer.version,
            self._cluster.now_ms,
            self._cluster.transaction_timeout_ms,
        )
        producer = Producer(transactions)
        transfer.producers.append(producer)
        transfer.processes.append(self._process())
        self._cluster.note(f"producer {number} of {transfer.name} starts")
        self._cluster.loop.start_in(transfer.processes[-1], producer.run)
        pause_s = self._cluster.pace.s(2 + self._random.random() * 6)
        self._cluster.loop.call_later(pause_s, self._take_over, transfer)

    def _take_over(self, transfer: _Transfer) -> None:
        if self._has_stopped:
            return
        if self._random.random() < 0.5:
            self._cluster.note(f"the producer of {transfer.name} is killed")
            self._cluster.loop.forget(transfer.processes[-1])
            self._cluster.loop.network.died(transfer.processes[-1])
        self._start_producer(transfer)

    async def settle(self) -> None:
        """After `stop`: no transaction may be stuck. Raises Violation."""
        if self.is_forgiven:
            return
        until_ms = self._cluster.loop.now_ms + SETTLES_WITHIN_MS
        for transfer in self._transfers:
            reader = self._reader(transfer)
            while True:
                try:
                    await reader.settle()
                    break
                except (NoAnswerError, RefusedError) as error:
                    if self._cluster.loop.now_ms > until_ms:
                        raise Violation(f"{transfer.name} is stuck: {error}") from None
                await asyncio.sleep(0.3)

    def judge(self) -> None:
        """Raises Violation for the first anomaly that lost records do not explain."""
        if self.is_forgiven:
            return
        for transfer in self._transfers:
            for what in transfer.ledger.anomalies:
                raise Violation(what)

    @property
    def is_forgiven(self) -> bool:
        """Committed records of the coordinators may be lost."""
        invariants = self._cluster.invariants
        return bool(invariants.forgiven(OFFSETS) or invariants.forgiven(TRANSACTIONS))
