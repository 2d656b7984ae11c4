"""Questions of a partition's leader to the coordinators of transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ottla.coordinator.transaction_verifier import Retry, TransactionVerifier
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import AddRequest
from ottla.transactions.stored import TopicPartition
from ottla.transactions.verification import Asked

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
PRODUCER = ProducerEpoch(1_000, 3)
OK = ErrorCode.none


class Bench:
    """Broker 1 is this one; ids that begin with "here" are coordinated by it, others by 2."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.added: list[AddRequest] = []
        self.verified: list[Any] = []
        self.local: list[ErrorCode] = []
        self.remote: dict[tuple[str, TopicPartition], list[ErrorCode]] = {}
        self.requests: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.unreachable = False
        self.top_error = OK
        self.verifier = TransactionVerifier(
            self.add,
            self.verify,
            lambda name: None if name == "nowhere" else 1 if name.startswith("here") else 2,
            self.ask,
            own_id=1,
            retry=Retry(20, 100),
            clock=clock,
        )

    async def add(self, request: AddRequest) -> ErrorCode:
        self.added.append(request)
        self.clock.time_ms += 20
        error = self.local.pop(0) if self.local else OK
        if error is ErrorCode.not_coordinator:
            raise ApiError(error)
        return error

    async def verify(self, *asked: Any) -> dict[TopicPartition, ErrorCode]:
        self.verified.append(asked)
        error = self.local.pop(0) if self.local else OK
        return dict.fromkeys(asked[2], error)

    async def ask(self, broker_id: int, request: Any) -> Any:
        assert broker_id == 2
        self.requests.append(request)
        await self.gate.wait()
        if self.unreachable:
            raise PeerError("cut")
        build = messages_of(24, 5)
        return build.AddPartitionsToTxnResponse(
            error_code=self.top_error,
            results_by_transaction=tuple(
                build.AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=tuple(
                        build.AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=tuple(
                                build.AddPartitionsToTxnPartitionResult(
                                    partition_index=index,
                                    partition_error_code=self.error_of(
                                        each.transactional_id, TopicPartition(topic.name, index)
                                    ),
                                )
                                for index in topic.partitions
                            ),
                        )
                        for topic in each.topics
                    ),
                )
                for each in request.transactions
            ),
        )

    def error_of(self, transactional_id: str, partition: TopicPartition) -> ErrorCode:
        errors = self.remote.get((transactional_id, partition))
        return errors.pop(0) if errors else OK

    async def question(
        self, transactional_id: str, asked: Asked, *partitions: TopicPartition
    ) -> dict[TopicPartition, ErrorCode]:
        named = frozenset(partitions)
        return await self.verifier.verify(transactional_id, PRODUCER, named, asked)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0)


@pytest.fixture
async def bench(clock: Any) -> AsyncIterator[Bench]:
    made = Bench(clock)
    yield made
    made.verifier.close()


async def test_a_coordinator_on_this_broker_is_called(bench: Bench) -> None:
    assert await bench.question("here", Asked.ADDED, A0) == {A0: OK}
    assert bench.added == [AddRequest("here", PRODUCER, frozenset({A0}), 2)]
    assert await bench.question("here", Asked.VERIFIED, A0) == {A0: OK}
    assert bench.verified == [("here", PRODUCER, frozenset({A0}))]
    bench.local = [ErrorCode.not_coordinator]
    answer = await bench.question("here", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.not_coordinator}
    assert not bench.requests


async def test_adding_waits_a_little_for_the_transaction_before(bench: Bench) -> None:
    bench.local = [ErrorCode.concurrent_transactions] * 2
    assert await bench.question("here", Asked.ADDED, A0) == {A0: OK}
    assert len(bench.added) == 3
    bench.local = [ErrorCode.concurrent_transactions] * 9
    answer = await bench.question("here", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.concurrent_transactions}
    assert len(bench.added) == 3 + 5


async def test_verifying_does_not_wait(bench: Bench) -> None:
    bench.local = [ErrorCode.concurrent_transactions]
    answer = await bench.question("here", Asked.VERIFIED, A0)
    assert answer == {A0: ErrorCode.concurrent_transactions}
    assert len(bench.verified) == 1


async def test_another_coordinator_gets_a_request(bench: Bench) -> None:
    bench.remote["t", A1] = [ErrorCode.transaction_abortable]
    answer = await bench.question("t", Asked.VERIFIED, A0, A1)
    assert answer == {A0: OK, A1: ErrorCode.invalid_txn_state}
    (request,) = bench.requests
    (transaction,) = request.transactions
    assert (transaction.producer_id, transaction.producer_epoch) == PRODUCER
    assert transaction.verify_only
    bench.remote["t", A0] = [ErrorCode.producer_fenced]
    answer = await bench.question("t", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.invalid_producer_epoch}
    assert not bench.requests[1].transactions[0].verify_only


async def test_questions_that_come_meanwhile_travel_together(bench: Bench) -> None:
    bench.gate.clear()
    first = asyncio.create_task(bench.question("t", Asked.ADDED, A0))
    await bench.until(lambda: len(bench.requests) == 1)
    others = [
        asyncio.create_task(bench.question(name, Asked.ADDED, partition))
        for name, partition in (("t", A1), ("u", A0), ("t", A0))
    ]
    await asyncio.sleep(0)
    bench.gate.set()
    for task in (first, *others):
        assert set((await task).values()) == {OK}
    sent = [[each.transactional_id for each in request.transactions] for request in bench.requests]
    assert sent == [["t"], ["t", "u"], ["t"]]


async def test_a_coordinator_that_does_not_answer(bench: Bench) -> None:
    bench.unreachable = True
    answer = await bench.question("t", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.network_exception}
    bench.unreachable = False
    bench.top_error = ErrorCode.cluster_authorization_failed
    answer = await bench.question("t", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.cluster_authorization_failed}


async def test_no_coordinator_now(bench: Bench) -> None:
    answer = await bench.question("nowhere", Asked.ADDED, A0)
    assert answer == {A0: ErrorCode.coordinator_not_available}


async def test_the_close_ends_what_waits(bench: Bench) -> None:
    bench.gate.clear()
    tasks = [asyncio.create_task(bench.question("t", Asked.ADDED, A0)) for _ in range(2)]
    await bench.until(lambda: len(bench.requests) == 1)
    bench.verifier.close()
    for task in tasks:
        assert await task == {A0: ErrorCode.network_exception}


async def test_a_caller_that_goes_away_does_not_stop_the_others(bench: Bench) -> None:
    bench.gate.clear()
    gone = asyncio.create_task(bench.question("t", Asked.ADDED, A0))
    await bench.until(lambda: len(bench.requests) == 1)
    left = asyncio.create_task(bench.question("u", Asked.ADDED, A0))
    await asyncio.sleep(0)
    gone.cancel()
    bench.gate.set()
    assert await left == {A0: OK}
