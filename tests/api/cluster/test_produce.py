"""Appends to partitions with other replicas; the other brokers exist only in the metadata."""

import asyncio
from typing import Any

import pytest

from ottla.network.handlers import EndConnectionError
from ottla.protocol.errors import ErrorCode

KEY = 0


@pytest.fixture
def own(node_call: Any) -> int:
    number: int = node_call.node.config.id
    return number


@pytest.fixture(autouse=True)
async def cluster(node_call: Any, own: int) -> None:
    """This broker leads t-0, broker 7 copies it; acks=all requires both."""
    # First: topic creation checks the registered brokers, and 7 is not registered.
    await node_call.create("u", partitions=4)
    await node_call.appear(7)
    await node_call.place("t", (own, 7))
    node_call.node.partitions.find("t", 0).min_insync_replicas = 2


async def produce(node_call: Any, timeout_ms: int = 60_000, **asked: int) -> Any:
    """The answer for t-0; `asked`: the partition, the version and acks, where they are others."""
    version = asked.get("version", 12)
    build = node_call.request(KEY, version)
    data = build.PartitionProduceData(index=asked.get("index", 0), records=node_call.batch(b"v"))
    topics = (build.TopicProduceData(name="t", partition_data=(data,)),)
    answer = await node_call.ask(
        build.ProduceRequest(acks=asked.get("acks", -1), timeout=timeout_ms, topic_data=topics)
    )
    return answer.responses[0].partition_responses[0]


async def waiting(node_call: Any) -> asyncio.Task[Any]:
    asked = asyncio.create_task(produce(node_call))
    await asyncio.sleep(0.01)
    assert not asked.done()
    return asked


async def test_acks_1_does_not_wait(node_call: Any) -> None:
    answer = await produce(node_call, acks=1)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)
    assert node_call.node.partitions.find("t", 0).high_watermark == 0


async def test_acks_all_waits_for_the_isr(node_call: Any, own: int) -> None:
    await node_call.appear(8)
    await node_call.place("t", (own, 7, 8))
    asked = await waiting(node_call)
    await node_call.copied(7, 1)
    await asyncio.sleep(0.01)
    assert not asked.done()
    await node_call.copied(8, 1)
    answer = await asyncio.wait_for(asked, 20)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)


async def test_no_wait_for_out_of_sync_replicas(node_call: Any, own: int) -> None:
    await node_call.appear(8)
    await node_call.place("t", (own, 7, 8), isr=(own, 7))
    asked = await waiting(node_call)
    await node_call.copied(7, 1)
    assert (await asyncio.wait_for(asked, 20)).error_code is ErrorCode.none


async def test_with_too_few_in_sync_replicas_nothing_is_written(node_call: Any, own: int) -> None:
    await node_call.place("t", (own, 7), isr=(own,))
    answer = await produce(node_call)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.not_enough_replicas, -1)
    assert node_call.node.partitions.find("t", 0).log.end_offset == 0
    assert (await produce(node_call, acks=1)).error_code is ErrorCode.none


async def test_too_few_in_sync_replicas_after_the_append(node_call: Any, own: int) -> None:
    asked = await waiting(node_call)
    await node_call.place("t", (own, 7), isr=(own,))
    node_call.node.partitions.find("t", 0).min_insync_replicas = 1
    await node_call.produce("t", node_call.batch(b"w"), acks=1)
    node_call.node.partitions.find("t", 0).min_insync_replicas = 2
    answer = await asyncio.wait_for(asked, 20)
    assert answer.error_code is ErrorCode.not_enough_replicas_after_append
    assert answer.base_offset == -1
    assert node_call.node.partitions.find("t", 0).log.end_offset == 2


async def test_a_follower_that_is_too_slow(node_call: Any) -> None:
    answer = await produce(node_call, timeout_ms=20)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.request_timed_out, -1)
    assert node_call.node.partitions.find("t", 0).log.end_offset == 1


async def test_a_waiting_producer_learns_the_next_leader(node_call: Any, own: int) -> None:
    asked = await waiting(node_call)
    state = await node_call.place("t", (7, own))
    answer = await asyncio.wait_for(asked, 20)
    assert answer.error_code is ErrorCode.not_leader_or_follower
    leader = answer.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (7, state.leader_epoch)


async def test_with_acks_0_a_follower_closes_the_connection(node_call: Any, own: int) -> None:
    await node_call.place("t", (7, own))
    with pytest.raises(EndConnectionError, match="t-0"):
        await node_call.produce("t", node_call.batch(b"v"), acks=0)


async def test_each_partition_has_its_own_answer(node_call: Any, own: int) -> None:
    """One request: led here, followed here, on other brokers, and with a slow follower."""
    await node_call.place("u", (own,), index=0)
    await node_call.place("u", (7, own), index=1)
    await node_call.place("u", (7, 8), index=2)
    await node_call.place("u", (own, 7), index=3)
    build = node_call.request(KEY, 12)
    data = tuple(
        build.PartitionProduceData(index=index, records=node_call.batch(b"v")) for index in range(4)
    )
    topics = (build.TopicProduceData(name="u", partition_data=data),)
    answer = await node_call.ask(build.ProduceRequest(acks=-1, timeout=20, topic_data=topics))
    found = {each.index: each.error_code for each in answer.responses[0].partition_responses}
    assert found == {
        0: ErrorCode.none,
        1: ErrorCode.not_leader_or_follower,
        2: ErrorCode.not_leader_or_follower,
        3: ErrorCode.request_timed_out,
    }
    assert [each.node_id for each in answer.node_endpoints] == [7]
