"""Offsets in transactions on a whole broker: its coordinators, markers and log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch

OK = ErrorCode.none


class Transactor:
    """A transactional producer that commits offsets of group g in partition t-0."""

    def __init__(self, node_call: Any, version: int) -> None:
        self.node_call = node_call
        self.version = version
        """Of TxnOffsetCommit; the others are of the same client."""
        self.producer = ProducerEpoch(-1, -1)

    async def begin(self) -> None:
        for topic in ("offsets", "transactions"):
            creation = self.node_call.node.topic_creation
            assert not (await getattr(creation, f"ensure_{topic}_topic")()).failed
        found = await self.node_call.node.transactions.initialize("id", 60_000, None)
        assert found.error is OK
        self.producer = found.producer

    @property
    def _own(self) -> dict[str, Any]:
        return {
            "transactional_id": "id",
            "producer_id": self.producer.producer_id,
            "producer_epoch": self.producer.epoch,
        }

    async def add_offsets(self) -> ErrorCode:
        build = self.node_call.request(25, 3)
        answer = await self.node_call.ask(build.AddOffsetsToTxnRequest(group_id="g", **self._own))
        return answer.error_code  # type: ignore[no-any-return]

    async def commit_offset(self, offset: int) -> ErrorCode:
        build = self.node_call.request(28, self.version)
        partition = build.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        topic = build.TxnOffsetCommitRequestTopic(name="t", partitions=(partition,))
        answer = await self.node_call.ask(
            build.TxnOffsetCommitRequest(group_id="g", topics=(topic,), **self._own)
        )
        return answer.topics[0].partitions[0].error_code  # type: ignore[no-any-return]

    async def end(self, *, commit: bool) -> ErrorCode:
        version = 5 if self.version >= 5 else 3
        build = self.node_call.request(26, version)
        answer = await self.node_call.ask(build.EndTxnRequest(committed=commit, **self._own))
        if version >= 5 and answer.error_code is OK:
            self.producer = ProducerEpoch(answer.producer_id, answer.producer_epoch)
        return answer.error_code  # type: ignore[no-any-return]

    async def stable_offset(self) -> int:
        """Asks until no transaction is open, as a consumer does."""
        async with asyncio.timeout(30):
            while True:
                groups = self.node_call.node.groups
                ((found,),) = await groups.fetch("g", (("t", None, (0,)),), require_stable=True)
                if found.error is not ErrorCode.unstable_offset_commit:
                    assert found.error is OK
                    return int(found.offset)
                await asyncio.sleep(0.01)


@pytest.fixture(params=[3, 4, 5])
async def transactor(request: pytest.FixtureRequest, node_call: Any) -> Transactor:
    made = Transactor(node_call, request.param)
    await made.begin()
    return made


async def patiently(ask: Callable[[], Awaitable[ErrorCode]]) -> ErrorCode:
    """Asks again while the markers of the transaction before are written, as clients do."""
    async with asyncio.timeout(30):
        while (error := await ask()) is ErrorCode.concurrent_transactions:
            await asyncio.sleep(0.01)
    return error


async def begun(transactor: Transactor, offset: int) -> None:
    """The first offset of a transaction; before version 5 the client adds the partition."""
    if transactor.version < 5:
        assert await patiently(transactor.add_offsets) is OK
    assert await patiently(lambda: transactor.commit_offset(offset)) is OK


async def test_committed_and_aborted(transactor: Transactor) -> None:
    await begun(transactor, 5)
    assert await transactor.commit_offset(6) is OK
    assert await transactor.end(commit=True) is OK
    assert await transactor.stable_offset() == 6
    await begun(transactor, 9)
    assert await transactor.end(commit=False) is OK
    assert await transactor.stable_offset() == 6
    await begun(transactor, 10)
    assert await transactor.end(commit=True) is OK
    assert await transactor.stable_offset() == 10


async def test_an_offset_without_its_transaction_is_refused(transactor: Transactor) -> None:
    """KIP-890: it would be pending for ever."""
    if transactor.version >= 5:
        former = transactor.producer
        await begun(transactor, 5)
        assert await transactor.end(commit=True) is OK
        assert await transactor.stable_offset() == 5
        transactor.producer = former
        assert await transactor.commit_offset(7) is ErrorCode.invalid_producer_epoch
    else:
        expected = {3: ErrorCode.invalid_txn_state, 4: ErrorCode.transaction_abortable}
        assert await transactor.commit_offset(7) is expected[transactor.version]
    assert await transactor.stable_offset() in (5, -1)


async def test_a_fenced_producer(transactor: Transactor) -> None:
    await begun(transactor, 5)
    zombie = transactor.producer
    found = await transactor.node_call.node.transactions.initialize("id", 60_000, None)
    while found.error is ErrorCode.concurrent_transactions:
        await asyncio.sleep(0.01)
        found = await transactor.node_call.node.transactions.initialize("id", 60_000, None)
    assert found.error is OK
    assert await transactor.stable_offset() == -1
    assert await transactor.commit_offset(6) is ErrorCode.invalid_producer_epoch
    assert transactor.producer == zombie
    transactor.producer = found.producer
    await begun(transactor, 8)
    assert await transactor.end(commit=True) is OK
    assert await transactor.stable_offset() == 8
