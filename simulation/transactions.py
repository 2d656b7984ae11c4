"""Transactions of a producer, those that commit offsets alone, and a reader of what they commit.

Every transactional id has a ledger of what may be read. A producer commits, aborts, or waits until
its transaction times out. From time to time another producer takes over its transactional id, and
the former one goes on or is killed. Where only offsets are committed, the transactional id has two
groups with different coordinators.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final, Protocol

from ottla.protocol.messages import messages_of
from ottla.shards.partitioning import partition_for
from simulation.batches import INIT_PRODUCER_ID
from simulation.connection import RETRY_S, TRANSACTION, Connections, NoAnswerError, RefusedError
from simulation.coordinator_client import ask_coordinator
from simulation.instances import Instances
from simulation.ledger import Ledger
from simulation.producer import Work
from simulation.transactional_offsets import Transaction, TransactionalOffsets

END_TXN: Final = 26
OWN_EPOCH: Final = 5
"""From this EndTxn on, each transaction has an epoch of its own (KIP-890)."""


def groups_of(transactional_id: str, partitions: int) -> tuple[str, str]:
    """Two groups of this transactional id, in different partitions of `__consumer_offsets`."""

    def names(index: int) -> Iterator[str]:
        for number in range(1_000):
            name = f"{transactional_id}-{number}"
            if partition_for(name, partitions) == index:
                yield name

    return next(names(0)), next(names(1))


class TransactionLedger(Protocol):
    """What the producers of one transactional id tell."""

    instances: Instances

    @property
    def name(self) -> str:
        """The transactional id."""

    def committing(self, number: int) -> None:
        """The producer is about to ask for the commit of this transaction."""

    def ended(self, number: int, *, is_commit: bool, was_fenced: bool) -> None:
        """The coordinator accepted its end."""


class Transactions(Work):
    """The transactions of one instance of a transactional id."""

    def __init__(
        self,
        connections: Connections,
        ledger: TransactionLedger,
        now_ms: Callable[[], int],
        random: Random,
        end_version: int,
        timeout_ms: int,
    ) -> None:
        """`end_version` is that of EndTxn."""
        self._connections = connections
        self._instances = ledger.instances
        self._of_ledger = ledger
        self._now_ms = now_ms
        self._random = random
        self._end_version = end_version
        self._timeout_ms = timeout_ms
        self._producer = (-1, -1)
        self._token = 0
        """The instance's, in the ledger."""

    async def begin(self) -> None:
        build = messages_of(INIT_PRODUCER_ID, 5, "request")
        producer_id, epoch = self.former()
        request = build.InitProducerIdRequest(
            transactional_id=self._of_ledger.name,
            transaction_timeout=self._timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        attempt = self._instances.asking(self._now_ms())
        try:
            answer = await self._of_transaction(request)
        except RefusedError:
            self._instances.refused(attempt)
            raise
        self._became(answer)
        token = self._instances.initialized(attempt)
        await self.initialized(token)
        self._token = token

    async def write(self) -> bool:
        return await self.transact()

    async def rest(self) -> None:
        await asyncio.sleep(self._random.random() * 0.3)

    async def give_up(self, error: Exception | None) -> bool:
        if isinstance(error, RefusedError):
            if self._token and self._instances.is_fenced(self._token):
                return True
            self.refused(error)
        await asyncio.sleep(RETRY_S)
        return False

    async def end(self, number: int, *, is_commit: bool) -> None:
        """Commit or abort."""
        build = messages_of(END_TXN, self._end_version, "request")
        request = build.EndTxnRequest(committed=is_commit, **self.transaction.fields)
        was_fenced = self._instances.is_fenced(self._token)
        if is_commit:
            self._of_ledger.committing(number)
        answer = await self.ask_end(request)
        if self._end_version >= OWN_EPOCH:
            self._became(answer)
        self._of_ledger.ended(number, is_commit=is_commit, was_fenced=was_fenced)

    @property
    def transaction(self) -> Transaction:
        return Transaction(self._of_ledger.name, *self._producer)

    def _became(self, answer: Any) -> None:
        producer = answer.producer_id, answer.producer_epoch
        if producer != self._producer:
            self._producer = producer
            self.changed()

    async def _of_transaction(self, request: Any) -> Any:
        return await ask_coordinator(
            self._connections,
            TRANSACTION,
            self._of_ledger.name,
            request,
            lambda answer: answer.error_code,
        )

    @abstractmethod
    async def transact(self) -> bool:
        """One transaction. False if the producer needs another epoch to go on."""

    def former(self) -> tuple[int, int]:
        """The id and epoch that the next epoch is asked for with (KIP-360)."""
        return -1, -1

    def changed(self) -> None:
        """The producer has another id or epoch."""

    async def initialized(self, token: int) -> None:
        """No transaction of a former instance is open."""

    def refused(self, error: RefusedError) -> None:
        """The coordinator or a leader refused a request, and no other instance has taken over."""

    async def ask_end(self, request: Any) -> Any:
        """The answer to EndTxn."""
        return await self._of_transaction(request)


class OffsetTransactions(Transactions):
    """Each commits its number as the offset of two groups. `version` is that of TxnOffsetCommit:
    from 5 on, brokers add the groups to the transaction (KIP-890)."""

    def __init__(
        self,
        name: str,
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
        connections = Connections(name, addresses)
        end_version = OWN_EPOCH if version >= 5 else 3
        super().__init__(connections, ledger, now_ms, random, end_version, timeout_ms)
        self._groups = groups
        self._ledger = ledger
        self._offsets = TransactionalOffsets(connections, topic, coordinator_of)
        self._version = version

    async def initialized(self, token: int) -> None:
        # No transaction is open now; both reads are of the same state unless another instance
        # is initialized meanwhile.
        first, second = [await self._offsets.stable(group) for group in self._groups]
        if self._instances.is_last(token):
            self._ledger.settled(first, second)

    async def transact(self) -> bool:
        number = self._ledger.begun()
        groups = list(self._groups)
        self._random.shuffle(groups)
        for group in groups:
            await self._offsets.commit(self.transaction, group, number, self._version)
            slow = self._random.random() < 0.03
            await asyncio.sleep(
                2 * self._timeout_ms / 1000 if slow else self._random.random() * 0.2
            )
        await self.end(number, is_commit=self._random.random() < 0.75)
        return True


class StableReader:
    """Reads both groups of a transactional id, as consumers that require stable offsets."""

    def __init__(
        self,
        client_id: str,
        groups: tuple[str, str],
        topic: str,
        addresses: Mapping[int, tuple[str, int]],
        ledger: Ledger,
        random: Random,
        coordinator_of: Callable[[str], int],
    ) -> None:
        self.groups = groups
        self._offsets = TransactionalOffsets(
            Connections(client_id, addresses), topic, coordinator_of
        )
        self._ledger = ledger
        self._random = random

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
