"""Topics that clients need, created by the controller of a single node."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from ottla.config import BrokerConfig
from ottla.controller.topics import NewTopic
from ottla.coordination.embedded import EmbeddedTree
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

Start = Callable[..., Awaitable[Any]]


@pytest.fixture
async def start(lone_node: Any) -> AsyncIterator[Start]:
    """Starts a node with these settings (dots as underscores)."""
    async with AsyncExitStack() as running:

        async def start(**settings: str) -> Any:
            tree = EmbeddedTree(None)
            running.push_async_callback(tree.close)
            config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
            node = lone_node(config, tree)
            await node.start()
            running.push_async_callback(node.membership.close)
            return node

        yield start


async def test_requested_topics_are_created_automatically(start: Start) -> None:
    node = await start(num_partitions="3")
    await node.controller.create_topics([NewTopic("there", 1, 1)])
    names = ["new", "new", "there", "a b"]
    outcomes = await node.topic_creation.auto_create(names)
    assert {name: outcome.code for name, outcome in outcomes.items()} == {
        "new": ErrorCode.none,
        "there": ErrorCode.none,
        "a b": ErrorCode.invalid_topic_exception,
    }
    assert len(node.image.topics["new"].partitions) == 3
    assert await node.topic_creation.auto_create([]) == {}


@pytest.mark.parametrize(
    ("segment_bytes", "setting"),
    [("104857600", "segment.bytes"), ("1000", "internal.segment.bytes")],
)
async def test_the_offsets_topic_is_compacted(
    start: Start, segment_bytes: str, setting: str
) -> None:
    node = await start(
        offsets_topic_num_partitions="7",
        offsets_topic_segment_bytes=segment_bytes,
        offsets_topic_replication_factor="1",
    )
    assert not (await node.topic_creation.ensure_offsets_topic()).failed
    assert not (await node.topic_creation.ensure_offsets_topic()).failed
    topic = node.image.topics[OFFSETS_TOPIC]
    assert len(topic.partitions) == 7
    assert topic.is_internal
    assert topic.overrides == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        setting: segment_bytes,
    }


async def test_the_transactions_topic_never_elects_a_replica_that_is_behind(start: Start) -> None:
    node = await start(transaction_state_log_num_partitions="7")
    assert not (await node.topic_creation.ensure_transactions_topic()).failed
    assert not (await node.topic_creation.ensure_transactions_topic()).failed
    topic = node.image.topics[TRANSACTIONS_TOPIC]
    assert len(topic.partitions) == 7
    assert topic.is_internal
    assert topic.overrides == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "segment.bytes": "104857600",
    }


async def test_too_few_brokers_for_the_transactions_topic(start: Start) -> None:
    node = await start(transaction_state_log_replication_factor="3")
    outcome = await node.topic_creation.ensure_transactions_topic()
    assert outcome.code is ErrorCode.invalid_replication_factor
    assert outcome.message is not None
    assert outcome.message.startswith(
        "Transactions are not available: cannot create __transaction_state"
    )
    assert "with a lower transaction.state.log.replication.factor" in outcome.message


async def test_too_few_brokers_for_the_offsets_topic_are_logged_with_advice(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    node = await start(offsets_topic_replication_factor="3")
    for _ in range(3):
        outcome = await node.topic_creation.ensure_offsets_topic()
    assert outcome.code is ErrorCode.invalid_replication_factor
    (logged,) = [each.getMessage() for each in caplog.records if each.name == "ottla.cluster"]
    assert logged == outcome.message
    assert logged.startswith("Consumer groups are not available: cannot create __consumer_offsets")
    assert "factor of 3 cannot be reached because only 1 broker(s) are registered" in logged
    assert (
        "Registered brokers: 1. Start another broker, or start the brokers with a lower" in logged
    )
    assert OFFSETS_TOPIC not in node.image.topics


async def test_without_a_controller_the_topic_stays_unknown(start: Start) -> None:
    node = await start()
    node.controller.resign("for the test")
    outcomes = await node.topic_creation.auto_create(["new"])
    assert outcomes["new"].code is ErrorCode.unknown_topic_or_partition
