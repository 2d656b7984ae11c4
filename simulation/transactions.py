"""Producers that commit offsets in transactions, and a reader of what they commit.

Every transactional id has two groups with different coordinators, and a ledger of what their
offsets may be. A producer commits, aborts, or waits until its transaction times out. From time to
time another producer takes over its transactional id, and the former one goes on or is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

from ottla.protocol.messages import messages_of
from ottla.shards.partitioning import partition_for
from simulation.connection import TRANSACTION, Connections, NoAnswerError
from simulation.consumers import RefusedError
from simulation.coordinator_client import RETRY_S, ask_coordinator
from simulation.ledger import Ledger
from simulation.transactional_offsets import Transaction, TransactionalOffsets

INIT_PRODUCER_ID: Final = 22
END_TXN: Final = 26


def groups_of(transactional_id: str, partitions: int) -> tuple[str, str]:
    """Two groups of this transactional id, in different partitions of `__consumer_offsets`."""

    def names(index: int) -> Iterator[str]:
        for number in range(1_000):
            name = f"{transactional_id}-{number}"
            if partition_for(name, partitions) == index:
                yield name

    return next(names(0)), next(names(1))


class _Client:
    """Requests to the coordinators of two groups and of their transactional id."""

    def __init__(
        self,
        client_id: str,
        transactional_id: str,
        groups: tuple[str, str],
        topic: str,
        addresses: Mapping[int, tuple[str, int]],
        ledger: Ledger,
        random: Random,
        coordinator_of: Callable[[str], int],
    ) -> None:
        self.transactional_id = transactional_id
        self.groups = groups
        self._connections = Connections(client_id, addresses)
        self._offsets = TransactionalOffsets(self._connections, topic, coordinator_of)
        self._ledger = ledger
        self._random = random


class TransactionalProducer(_Client):
    """One instance of a transactional id. `version` is that of TxnOffsetCommit: from 5 on, each
    transaction has an epoch of its own and brokers add partitions (KIP-890)."""

    def __init__(
        self,
        name: str,
        transactional_id: str,
        groups: tuple[str, str],
        topic: str,
        addresses: Mapping[int, tuple[str, int]],
        ledger: Ledger,
        random: Random,
        coordinator_of: Callable[[str], int],
        version: int,
        now_ms: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        super().__init__(
            name, transactional_id, groups, topic, addresses, ledger, random, coordinator_of
        )
        self.stopping = False
        self.has_stopped = False
        self._version = version
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._producer = (-1, -1)

    async def run(self) -> None:
        """Runs until it is stopped, or another instance has taken over."""
        await self._run()
        self.has_stopped = True

    async def _run(self) -> None:
        token = 0
        while not self.stopping:
            try:
                token = await self._begin()
                while not self.stopping:
                    await self._transact(token)
                    await asyncio.sleep(self._random.random() * 0.3)
            except NoAnswerError:
                pass
            except RefusedError:
                if token and self._ledger.instances.is_fenced(token):
                    return
            await asyncio.sleep(RETRY_S)

    async def _begin(self) -> int:
        build = messages_of(INIT_PRODUCER_ID, 5, "request")
        request = build.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout=self._timeout_ms,
        )
        instances = self._ledger.instances
        attempt = instances.asking(self._now_ms())
        try:
            answer = await self._of_transaction(request)
        except RefusedError:
            instances.refused(attempt)
            raise
        token = instances.initialized(attempt)
        self._producer = answer.producer_id, answer.producer_epoch
        # No transaction is open now; both reads are of the same state unless another instance
        # is initialized meanwhile.
        first, second = [await self._offsets.stable(group) for group in self.groups]
        if instances.is_last(token):
            self._ledger.settled(first, second)
        return token

    async def _transact(self, token: int) -> None:
        number = self._ledger.begun()
        groups = list(self.groups)
        self._random.shuffle(groups)
        for group in groups:
            await self._offsets.commit(self._transaction, group, number, self._version)
            slow = self._random.random() < 0.03
            await asyncio.sleep(
                2 * self._timeout_ms / 1000 if slow else self._random.random() * 0.2
            )
        is_commit = self._random.random() < 0.75
        was_fenced = self._ledger.instances.is_fenced(token)
        if is_commit:
            self._ledger.committing(number)
        await self._end(is_commit=is_commit)
        self._ledger.ended(number, is_commit=is_commit, was_fenced=was_fenced)

    async def _end(self, *, is_commit: bool) -> None:
        build = messages_of(END_TXN, 5 if self._version >= 5 else 3, "request")
        answer = await self._of_transaction(
            build.EndTxnRequest(committed=is_commit, **self._transaction.fields)
        )
        if self._version >= 5:
            self._producer = answer.producer_id, answer.producer_epoch

    @property
    def _transaction(self) -> Transaction:
        return Transaction(self.transactional_id, *self._producer)

    async def _of_transaction(self, request: Any) -> Any:
        return await ask_coordinator(
            self._connections,
            TRANSACTION,
            self.transactional_id,
            request,
            lambda answer: answer.error_code,
        )


class StableReader(_Client):
    """Reads both groups, as consumers that require stable offsets."""

    async def run(self) -> None:
        last = dict.fromkeys(self.groups, 0)
        while True:
            for group in self.groups:
                floor = max(self._ledger.floor, last[group])
                try:
                    last[group] = await self._offsets.stable(group)
                except (NoAnswerError, RefusedError):
                    continue
                self._ledger.read(last[group], floor)
            await asyncio.sleep(self._random.random() * 0.5)

    async def settle(self) -> None:
        """All producers have stopped: reads what is there in the end. Raises NoAnswerError,
        RefusedError where a transaction is stuck."""
        first, second = [await self._offsets.stable(group) for group in self.groups]
        self._ledger.read(first, self._ledger.floor)
        self._ledger.settled(first, second)
