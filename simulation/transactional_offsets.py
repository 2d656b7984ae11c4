"""A group's offsets in transactions: committing them (KIP-98, KIP-447) and reading them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.protocol.messages import messages_of
from simulation.connection import GROUP, TRANSACTION, Connections, NoAnswerError
from simulation.consumers import OFFSET_COMMIT, OFFSET_FETCH
from simulation.coordinator_client import ask_coordinator

ADD_OFFSETS_TO_TXN: Final = 25
TXN_OFFSET_COMMIT: Final = 28
IMPLICIT_VERSION: Final = 5
"""From this TxnOffsetCommit on, the broker adds the group to the transaction (KIP-890)."""
WITH_RETENTION: Final = 2
"""The last OffsetCommit in which all brokers read the retention; it left the protocol with 5."""


class Transaction(NamedTuple):
    """Of which transaction a request is."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


class TransactionalOffsets:
    """Offsets of partition 0 of one topic. All methods raise NoAnswerError, RefusedError."""

    def __init__(
        self, connections: Connections, topic: str, coordinator_of: Callable[[str], int]
    ) -> None:
        """`coordinator_of` returns the broker that coordinates a group by now, as the tree has it;
        clients cannot know."""
        self._connections = connections
        self._topic = topic
        self._coordinator_of = coordinator_of

    async def commit(self, transaction: Transaction, group: str, offset: int, version: int) -> None:
        """Commit an offset in the transaction; `version` is that of TxnOffsetCommit."""
        if version < IMPLICIT_VERSION:
            build = messages_of(ADD_OFFSETS_TO_TXN, 3, "request")
            add = build.AddOffsetsToTxnRequest(group_id=group, **transaction.fields)
            await ask_coordinator(
                self._connections,
                TRANSACTION,
                transaction.transactional_id,
                add,
                lambda answer: answer.error_code,
            )
        build = messages_of(TXN_OFFSET_COMMIT, version, "request")
        partition = build.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        topic = build.TxnOffsetCommitRequestTopic(name=self._topic, partitions=(partition,))
        request = build.TxnOffsetCommitRequest(
            group_id=group, topics=(topic,), **transaction.fields
        )
        await self._ask(group, request)

    async def commit_until(self, group: str, offset: int, retention_ms: int) -> None:
        """Commit an offset outside transactions that expires after `retention_ms`."""
        build = messages_of(OFFSET_COMMIT, WITH_RETENTION, "request")
        partition = build.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        topic = build.OffsetCommitRequestTopic(name=self._topic, partitions=(partition,))
        request = build.OffsetCommitRequest(
            group_id=group,
            member_id="",
            retention_time=retention_ms,
            topics=(topic,),
        )
        await self._ask(group, request)

    async def stable(self, group: str) -> int:
        """The group's offset once no transaction may change it; 0 without one.

        A coordinator that was replaced and does not know it returns an old one, as in Apache Kafka:
        that is no answer. There, too, OffsetFetch reads the memory of a coordinator that is active
        by its own knowledge, and asks no other broker. With `require_stable`, it is a write without
        records (GroupCoordinatorService.fetchOffsets): CoordinatorRuntime answers at once if no
        write is pending, and otherwise with the last pending write, which a replaced leader never
        commits. KIP-447, which added the field, promises nothing about a replaced coordinator: what
        protects a consumer is that TxnOffsetCommit is refused there (NOT_COORDINATOR).
        """
        build = messages_of(OFFSET_FETCH, 7, "request")
        topic = build.OffsetFetchRequestTopic(name=self._topic, partition_indexes=(0,))
        request = build.OffsetFetchRequest(group_id=group, topics=(topic,), require_stable=True)

        def code_of(answer: Any) -> int:
            code = answer.error_code
            return int(code or answer.topics[0].partitions[0].error_code)

        answer = await ask_coordinator(self._connections, GROUP, group, request, code_of)
        if self._connections.coordinators.get((group, GROUP)) != self._coordinator_of(group):
            self._connections.forget_coordinator(group, GROUP)
            raise NoAnswerError(f"the coordinator of {group} was replaced")
        return max(int(answer.topics[0].partitions[0].committed_offset), 0)

    async def _ask(self, group: str, request: Any) -> None:
        await ask_coordinator(
            self._connections,
            GROUP,
            group,
            request,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
