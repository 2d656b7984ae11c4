"""What a test may ask of a broker: done on its node, or refused in one line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.testing.controlled.fault_script import MAX_RULES, FaultScript
from ottla.testing.controlled.operations import Operations, RefusedError

PRODUCE = 0
RULE = {"api_key": PRODUCE, "effect": "delay", "wait_ms": 5}


@pytest.fixture
def script() -> FaultScript:
    return FaultScript()


@pytest.fixture
def operations(node_call: Any, script: FaultScript) -> Operations:
    """Topic t is there, with one partition that holds two records of one key."""
    return Operations(node_call.node, script)


async def write(node_call: Any, topic: str, *values: bytes) -> Any:
    for value in values:
        batch = build_batch([Record(0, 1_000, b"k", value)])
        assert (await node_call.produce(topic, batch)).error_code is ErrorCode.none
    return node_call.node.partitions.find(topic, 0).log


async def test_a_rolled_topic_begins_a_new_segment(node_call: Any, operations: Operations) -> None:
    log = await write(node_call, "t", b"a")
    await operations.roll("t")
    assert log.active.base_offset == 1
    await write(node_call, "t", b"b")
    assert (log.active.base_offset, log.end_offset) == (1, 2)


async def test_compaction_keeps_the_newest_record_of_a_key(
    node_call: Any, operations: Operations
) -> None:
    await node_call.create("keyed", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    log = await write(node_call, "keyed", b"a", b"b", b"c")
    await operations.compact("keyed")
    data = bytes(log.read(0, max_bytes=1 << 20).read())
    assert [record.value for record in iterate_records(data)] == [b"c"]


async def test_what_retention_no_longer_keeps_is_removed(
    node_call: Any, operations: Operations
) -> None:
    await node_call.create("short", retention_ms="1")
    log = await write(node_call, "short", b"a", b"b")
    await operations.roll("short")
    await operations.retain()
    assert (log.start_offset, log.end_offset) == (2, 2)


async def test_refusals(operations: Operations) -> None:
    with pytest.raises(RefusedError, match=r"^there is no topic none$"):
        await operations.roll("none")
    with pytest.raises(RefusedError, match=r"^there is no topic none$"):
        await operations.compact("none")
    with pytest.raises(RefusedError, match=r"t is not compacted: create it with cleanup.policy"):
        await operations.compact("t")


async def test_a_partition_on_other_brokers_is_left_alone(
    node_call: Any, operations: Operations
) -> None:
    """A topic that exists, but not here, is no mistake: all brokers are asked."""
    await node_call.appear(2)
    await node_call.create("far")
    await node_call.place("far", (2,))
    assert node_call.node.partitions.of_topic("far") == []
    await operations.roll("far")
    await operations.compact("far")
    assert node_call.node.partitions.of_topic("far") == []


async def test_a_lagging_follower_makes_its_partition_unsteady(
    node_call: Any, operations: Operations
) -> None:
    assert await operations.unsettled() == []
    await node_call.appear(2)
    await node_call.place("t", (node_call.node.config.id, 2))
    leader = node_call.node.partitions.find("t", 0).leader
    leader.in_flight = object()
    assert await operations.unsettled() == ["t-0"]
    leader.in_flight = None
    assert await operations.unsettled() == []
    batch = build_batch([Record(0, 1_000, b"k", b"v")])
    assert (await node_call.produce("t", batch, acks=1)).error_code is ErrorCode.none
    assert await operations.unsettled() == [], "it may lag for a while"
    node_call.node.clock = SimpleNamespace(monotonic_ms=lambda: 10**15)
    assert await operations.unsettled() == ["t-0"]


async def test_faults_and_the_requests_that_met_them(
    operations: Operations, script: FaultScript
) -> None:
    rule_id = await operations.add_fault(RULE)
    for number in range(3):
        script.meet(number, PRODUCE, 13, "client", frozenset({"t"}))
    await operations.remove_fault(rule_id)
    script.meet(3, PRODUCE, 13, "client", frozenset({"t"}))
    assert await operations.count_received() == 4
    all_of_them = await operations.received()
    assert [each[:3] for each in all_of_them] == [[n + 1, n, "Produce"] for n in range(4)]
    assert [each[0] for each in await operations.received(after=2)] == [3, 4]
    assert [each[0] for each in await operations.received(rule_id)] == [1, 2, 3]
    assert [each[0] for each in await operations.received(rule_id, after=2)] == [3]


async def test_too_many_faults(operations: Operations) -> None:
    for _ in range(MAX_RULES):
        await operations.add_fault(RULE)
    with pytest.raises(RefusedError, match=f"there are {MAX_RULES} faults already; remove some"):
        await operations.add_fault(RULE)


async def test_the_brokers_time(node_call: Any, operations: Operations) -> None:
    node_call.node.clock = SimpleNamespace(now_ms=lambda: 1_234)
    assert await operations.now_ms() == 1_234
