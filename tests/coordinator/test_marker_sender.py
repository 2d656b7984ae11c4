"""Markers: to the leaders, again where they are refused, and on to the coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.turns import most_calls_at_once

from ottla.coordinator import marker_sender
from ottla.coordinator.marker_sender import NO_LEADER, MarkerSender, Transactions, Written
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.shards.step import ProducerEpoch
from ottla.transactions.step import MarkersDue
from ottla.transactions.stored import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
PRODUCER = ProducerEpoch(1_000, 3)


def due(*partitions: TopicPartition, transactional_id: str = "t") -> MarkersDue:
    producer = PRODUCER if transactional_id == "t" else ProducerEpoch(2_000, 0)
    return MarkersDue(transactional_id, producer, True, frozenset(partitions), 2)


class Bench:
    """Brokers that answer as `errors` say; a request can be held back."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int] = {A0: 1, A1: 2, B0: 1}
        self.errors: dict[TopicPartition, list[ErrorCode]] = {}
        self.requests: list[tuple[int, Any]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.unreachable: set[int] = set()
        self.epoch: int | None = 7
        self.written: list[Written] = []
        self.refusals: list[ErrorCode] = []
        self.sender = MarkerSender(
            Transactions(lambda _: 5, lambda index: self.epoch, self.complete),
            self.leaders.get,
            self.ask,
        )

    async def complete(self, index: int, written: Any) -> None:
        assert index == 5
        if self.refusals:
            raise ApiError(self.refusals.pop(0))
        self.written += written

    async def ask(self, broker_id: int, request: Any) -> Any:
        self.requests.append((broker_id, request))
        await self.gate.wait()
        if broker_id in self.unreachable:
            raise PeerError("cut")
        build = messages_of(27, 2)
        return build.WriteTxnMarkersResponse(
            markers=tuple(
                build.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        build.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                build.WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.error_of(TopicPartition(topic.name, index)),
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.markers
            )
        )

    def error_of(self, partition: TopicPartition) -> ErrorCode:
        errors = self.errors.get(partition)
        return errors.pop(0) if errors else ErrorCode.none

    def sent_to(self, broker_id: int) -> list[list[tuple[str, tuple[int, ...]]]]:
        """The topics of each request's first marker."""
        return [
            [(topic.name, topic.partition_indexes) for topic in request.markers[0].topics]
            for number, request in self.requests
            if number == broker_id
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.001)

    async def done(self) -> frozenset[TopicPartition]:
        """Waits until nothing is being written; the partitions that have their markers."""
        await self.until(lambda: len(self.sender) == 0)
        return frozenset(each for written in self.written for each in written.partitions)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(marker_sender, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(marker_sender, "MAX_PAUSE_MS", 2)
    made = Bench()
    yield made
    made.sender.close()


async def test_each_leader_gets_its_partitions(bench: Bench) -> None:
    bench.sender.send(due(A0, A1, B0))
    assert await bench.done() == {A0, A1, B0}
    assert bench.sent_to(1) == [[("a", (0,)), ("b", (0,))]]
    assert bench.sent_to(2) == [[("a", (1,))]]
    marker = bench.requests[0][1].markers[0]
    assert (marker.producer_id, marker.producer_epoch) == PRODUCER
    assert (marker.transaction_result, marker.coordinator_epoch) == (True, 7)
    assert marker.transaction_version == 2
    assert {(each.transactional_id, each.producer) for each in bench.written} == {("t", PRODUCER)}


async def test_markers_that_come_meanwhile_travel_together(bench: Bench) -> None:
    bench.gate.clear()
    bench.sender.send(due(A0))
    await bench.until(lambda: len(bench.requests) == 1)
    bench.sender.send(due(B0, transactional_id="u"))
    bench.sender.send(due(A0, transactional_id="v")._replace(producer=ProducerEpoch(3_000, 1)))
    bench.gate.set()
    await bench.done()
    assert [len(request.markers) for _, request in bench.requests] == [1, 2]


async def test_many_partitions_travel_in_several_requests(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no request, answer or decision about them takes long."""
    monkeypatch.setattr(marker_sender, "MAX_PARTITIONS", 3)
    bench.leaders |= {TopicPartition("a", index): 1 for index in range(8)}
    bench.sender.send(due(*bench.leaders))
    bench.sender.send(due(A0, B0, transactional_id="u"))
    await bench.done()
    sizes = [
        sum(len(topic.partition_indexes) for marker in request.markers for topic in marker.topics)
        for _, request in bench.requests
    ]
    assert max(sizes) == 3
    assert sum(sizes) == len(bench.leaders) + 2
    of_t = [each.partitions for each in bench.written if each.transactional_id == "t"]
    assert frozenset().union(*of_t) == frozenset(bench.leaders)


async def test_many_markers_hold_nobody(bench: Bench) -> None:
    partitions = [TopicPartition("many", index) for index in range(20_000)]
    bench.leaders |= dict.fromkeys(partitions, 1)

    async def send() -> None:
        for name in ("t", "u"):
            bench.sender.send(due(*partitions, transactional_id=name))
        await bench.done()

    _, most_calls = await most_calls_at_once(send())
    assert most_calls < 100_000
    assert sum(len(each.partitions) for each in bench.written) == 2 * len(partitions)


async def test_a_transaction_under_way_is_not_sent_again(bench: Bench) -> None:
    bench.gate.clear()
    bench.sender.send(due(A0))
    await bench.until(lambda: len(bench.requests) == 1)
    bench.sender.send(due(A0))
    bench.gate.set()
    assert await bench.done() == {A0}
    assert len(bench.requests) == 1


async def test_without_partitions_it_is_complete(bench: Bench) -> None:
    bench.sender.send(due())
    assert await bench.done() == frozenset()
    assert [each.transactional_id for each in bench.written] == ["t"]
    assert not bench.requests


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.kafka_storage_error,
        ErrorCode.coordinator_load_in_progress,
    ],
)
async def test_a_refused_marker_goes_to_the_leader_of_then(bench: Bench, error: ErrorCode) -> None:
    bench.errors[A0] = [error, error]
    bench.gate.clear()
    bench.sender.send(due(A0, B0))
    await bench.until(lambda: len(bench.requests) == 1)
    bench.leaders[A0] = 2
    bench.gate.set()
    assert await bench.done() == {A0, B0}
    assert bench.sent_to(1) == [[("a", (0,)), ("b", (0,))]]
    assert bench.sent_to(2) == [[("a", (0,))]] * 2


async def test_a_broker_that_cannot_be_reached(bench: Bench) -> None:
    bench.unreachable.add(1)
    bench.sender.send(due(A0))
    await bench.until(lambda: len(bench.requests) == 3)
    bench.unreachable.clear()
    assert await bench.done() == {A0}


async def test_a_partition_without_a_leader_waits_for_one(bench: Bench) -> None:
    bench.leaders[A0] = NO_LEADER
    bench.sender.send(due(A0, A1))
    await bench.until(lambda: len(bench.written) == 1)
    assert len(bench.sender) == 1
    bench.leaders[A0] = 2
    assert await bench.done() == {A0, A1}


async def test_a_deleted_partition_needs_no_marker(bench: Bench) -> None:
    del bench.leaders[A0]
    bench.sender.send(due(A0, A1))
    assert await bench.done() == {A0, A1}
    assert bench.sent_to(1) == []


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.invalid_producer_epoch,
        ErrorCode.transaction_coordinator_fenced,
        ErrorCode.corrupt_message,
    ],
)
async def test_a_marker_that_must_not_be_written_ends_the_attempt(
    bench: Bench, error: ErrorCode
) -> None:
    """Trap 4: the scan for timeouts asks again, so nothing stays prepared for ever."""
    bench.errors[A0] = [error]
    bench.sender.send(due(A0, B0))
    assert await bench.done() == {B0}
    bench.sender.send(due(A0))
    assert await bench.done() == {A0, B0}


async def test_another_coordinator_goes_on(bench: Bench) -> None:
    bench.errors[A0] = [ErrorCode.not_leader_or_follower] * 1_000
    bench.sender.send(due(A0))
    await bench.until(lambda: len(bench.requests) >= 2)
    bench.epoch = None
    assert await bench.done() == frozenset()
    bench.sender.send(due(A0))
    assert len(bench.sender) == 0


async def test_a_new_epoch_of_the_same_coordinator_sends_all_again(bench: Bench) -> None:
    bench.gate.clear()
    bench.sender.send(due(A0))
    await bench.until(lambda: len(bench.requests) == 1)
    bench.epoch = 8
    bench.sender.send(due(A0))
    bench.gate.set()
    assert await bench.done() == {A0}
    epochs = [request.markers[0].coordinator_epoch for _, request in bench.requests]
    assert epochs == [7, 8]


async def test_the_end_is_written_again_while_it_is_refused(bench: Bench) -> None:
    bench.refusals = [ErrorCode.coordinator_not_available] * 2
    bench.sender.send(due(A0))
    assert await bench.done() == {A0}
    assert len(bench.requests) == 1


async def test_the_end_is_left_to_the_next_coordinator(bench: Bench) -> None:
    bench.refusals = [ErrorCode.not_coordinator]
    bench.sender.send(due(A0))
    assert await bench.done() == frozenset()


async def test_an_own_bug_leaves_nothing_under_way(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    failing = True

    async def ask(broker_id: int, request: Any) -> Any:
        if failing:
            raise AssertionError("a bug")
        return await bench.ask(broker_id, request)

    bench.sender._ask = ask
    bench.sender.send(due(A0))
    assert await bench.done() == frozenset()
    assert "writing transaction markers failed" in caplog.text
    failing = False
    bench.sender.send(due(A0))
    assert await bench.done() == {A0}
