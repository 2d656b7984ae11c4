"""A broker whose wall clock jumps, under a real client: a whole node in this process, with a clock
from outside, and librdkafka over loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.api.table import HANDLERS
from ottla.config import BrokerConfig
from ottla.node.node import Node
from ottla.runtime.clock import SystemClock

WAIT_S = 60
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SCAN_MS = 200
TIMEOUT_MS = 60_000


class JumpingClock:
    """The machine's, but that its wall clock can be set."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._machine = SystemClock()

    def now_ms(self) -> int:
        return self._machine.now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()


class Jumping:
    """A broker with such a clock. Clients wait in threads: the broker runs in the loop."""

    def __init__(self, node: Node, clock: JumpingClock) -> None:
        self.node = node
        self.clock = clock
        self.bootstrap = f"{node.endpoints[0].host}:{node.endpoints[0].port}"

    def producer(self, transactional_id: str) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TIMEOUT_MS,
            }
        )

    def create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic("t", 1, 1, config={"retention.ms": "-1"})
        admin.create_topics([topic])["t"].result(WAIT_S)

    def read(self, count: int) -> list[str]:
        """So many committed values."""
        given = {"bootstrap.servers": self.bootstrap, "group.id": "none"}
        reader = Consumer({**given, "isolation.level": "read_committed"})
        reader.assign([TopicPartition("t", 0, 0)])
        values: list[str] = []
        until = time.monotonic() + WAIT_S
        while len(values) < count:
            assert time.monotonic() < until, values
            values += [each.value().decode() for each in reader.consume(count, timeout=0.2)]
        reader.close()
        return values


@pytest.fixture
async def jumping(tmp_path: Path) -> AsyncIterator[Jumping]:
    clock = JumpingClock()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(SCAN_MS),
        "transaction.remove.expired.transaction.cleanup.interval.ms": str(SCAN_MS),
    }
    node = Node(BrokerConfig(settings), HANDLERS, clock=clock)
    await node.start()
    yield Jumping(node, clock)
    await node.close()


def filled(producer: Producer, *values: str) -> None:
    """An open transaction with these values in the log."""
    producer.begin_transaction()
    for value in values:
        producer.produce("t", value)
    assert producer.flush(WAIT_S) == 0


def commits(producer: Producer, *values: str) -> None:
    filled(producer, *values)
    producer.commit_transaction(WAIT_S)


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.wait_for(asyncio.to_thread(call, *arguments), 2 * WAIT_S)


async def until_none_is_open(jumping: Jumping) -> None:
    partition = jumping.node.partitions.find("t", 0)
    async with asyncio.timeout(WAIT_S):
        while partition.last_stable_offset < partition.high_watermark:
            await asyncio.sleep(0.02)


async def test_a_jump_forward_ends_an_open_transaction_and_nothing_else(jumping: Jumping) -> None:
    """The transaction is older than its timeout, so the next scan aborts it, as in Kafka. Its
    producer is fenced: librdkafka ends transactions as before KIP-890."""
    await in_thread(jumping.create)
    producer = jumping.producer("x")
    await in_thread(producer.init_transactions, WAIT_S)
    await in_thread(commits, producer, "kept")
    await in_thread(filled, producer, "lost")
    jumping.clock.ahead_ms = 2 * TIMEOUT_MS
    await until_none_is_open(jumping)
    with pytest.raises(KafkaException):
        await in_thread(producer.commit_transaction, WAIT_S)
    successor = jumping.producer("x")
    await in_thread(successor.init_transactions, WAIT_S)
    await in_thread(commits, successor, "after")
    assert await in_thread(jumping.read, 2) == ["kept", "after"]


async def test_a_jump_back_neither_ends_a_transaction_nor_keeps_it_for_ever(
    jumping: Jumping,
) -> None:
    await in_thread(jumping.create)
    jumping.clock.ahead_ms = HOUR_MS
    producer = jumping.producer("x")
    await in_thread(producer.init_transactions, WAIT_S)
    await in_thread(filled, producer, "kept")
    jumping.clock.ahead_ms = 0
    await asyncio.sleep(3 * SCAN_MS / 1000)
    await in_thread(producer.commit_transaction, WAIT_S)
    # One that began before the jump has no negative age, and no later timeout than its own.
    jumping.clock.ahead_ms = HOUR_MS
    await in_thread(filled, producer, "lost")
    jumping.clock.ahead_ms = 0
    successor = jumping.producer("x")
    await in_thread(successor.init_transactions, WAIT_S)
    await in_thread(commits, successor, "after")
    assert await in_thread(jumping.read, 2) == ["kept", "after"]
    with pytest.raises(KafkaException):
        await in_thread(producer.commit_transaction, WAIT_S)


async def test_a_jump_over_every_expiry(jumping: Jumping) -> None:
    """Past transactional.id.expiration.ms and producer.id.expiration.ms: the id is forgotten, and
    the producer is told; a new one begins again. Nothing committed is lost."""
    await in_thread(jumping.create)
    producer = jumping.producer("x")
    await in_thread(producer.init_transactions, WAIT_S)
    await in_thread(commits, producer, "kept")
    jumping.clock.ahead_ms = 8 * DAY_MS
    await asyncio.sleep(5 * SCAN_MS / 1000)
    with pytest.raises(KafkaException):
        await in_thread(commits, producer, "lost")
    successor = jumping.producer("x")
    await in_thread(successor.init_transactions, WAIT_S)
    await in_thread(commits, successor, "after")
    assert await in_thread(jumping.read, 2) == ["kept", "after"]
