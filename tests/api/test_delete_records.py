import asyncio
from typing import Any

import pytest

from ottla.controller.image import BrokerVanished
from ottla.protocol.errors import ErrorCode

KEY = 21


async def delete(
    node_call: Any,
    offset: int,
    version: int = 2,
    topic: str = "t",
    index: int = 0,
    timeout_ms: int = 60_000,
) -> tuple[ErrorCode, int]:
    """Error and low watermark."""
    build = node_call.request(KEY, version)
    partition = build.DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = (build.DeleteRecordsTopic(name=topic, partitions=(partition,)),)
    answer = await node_call.ask(build.DeleteRecordsRequest(topics=topics, timeout=timeout_ms))
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", range(3))
async def test_every_version_moves_the_log_start(node_call: Any, version: int) -> None:
    for _ in range(4):
        await node_call.produce("t", node_call.batch(b"a", b"b"))
    assert await delete(node_call, 3, version) == (ErrorCode.none, 3)
    assert await delete(node_call, 1, version) == (ErrorCode.none, 3)
    assert node_call.node.partitions.find("t", 0).log.start_offset == 3
    assert await delete(node_call, -1, version) == (ErrorCode.none, 8)


async def test_what_is_refused(node_call: Any) -> None:
    await node_call.create("compact", cleanup_policy="compact")
    for asked, code in (
        ((1,), ErrorCode.offset_out_of_range),
        ((-2,), ErrorCode.offset_out_of_range),
        ((0, 2, "none"), ErrorCode.unknown_topic_or_partition),
        ((0, 2, "t", 4), ErrorCode.unknown_topic_or_partition),
        ((0, 2, "compact"), ErrorCode.policy_violation),
    ):
        assert await delete(node_call, *asked) == (code, -1), asked


class TestReplicas:
    """The response waits until no live replica has the records: broker 7 copies t-0."""

    @pytest.fixture(autouse=True)
    async def cluster(self, node_call: Any) -> None:
        await node_call.appear(7)
        await node_call.place("t", (node_call.node.config.id, 7))
        for _ in range(3):
            await node_call.produce("t", node_call.batch(b"v"), acks=1)
        await node_call.copied(7, 3, 0)

    async def under_way(self, node_call: Any, offset: int) -> asyncio.Task[Any]:
        asked = asyncio.create_task(delete(node_call, offset))
        await asyncio.sleep(0.01)
        assert not asked.done()
        return asked

    async def test_it_waits_for_the_slowest_follower(self, node_call: Any) -> None:
        asked = await self.under_way(node_call, 2)
        assert (await node_call.copied(7, 3, 0)).log_start_offset == 2
        await node_call.copied(7, 3, 1)
        await asyncio.sleep(0.01)
        assert not asked.done()
        await node_call.copied(7, 3, 2)
        assert await asyncio.wait_for(asked, 20) == (ErrorCode.none, 2)
        assert await delete(node_call, 1) == (ErrorCode.none, 2)

    async def test_it_waits_for_out_of_sync_followers_too(self, node_call: Any) -> None:
        me = node_call.node.config.id
        await node_call.place("t", (me, 7), isr=(me,))
        asked = await self.under_way(node_call, 2)
        await node_call.copied(7, 2, 1)
        await asyncio.sleep(0.01)
        assert not asked.done()
        await node_call.copied(7, 2, 2)
        assert await asyncio.wait_for(asked, 20) == (ErrorCode.none, 2)

    async def test_it_does_not_wait_for_dead_brokers(self, node_call: Any) -> None:
        await node_call.node.view.apply([BrokerVanished(7)])
        assert await delete(node_call, 2) == (ErrorCode.none, 2)

    async def test_it_waits_no_longer_than_the_timeout(self, node_call: Any) -> None:
        assert await delete(node_call, 2, timeout_ms=20) == (ErrorCode.request_timed_out, -1)
        assert node_call.node.partitions.find("t", 0).log.start_offset == 2

    async def test_a_former_leader_returns_an_error(self, node_call: Any) -> None:
        asked = await self.under_way(node_call, 2)
        await node_call.place("t", (7, node_call.node.config.id))
        code = (ErrorCode.not_leader_or_follower, -1)
        assert await asyncio.wait_for(asked, 20) == code
        assert await delete(node_call, 2) == code

    async def test_it_stops_waiting_for_a_broker_that_dies(self, node_call: Any) -> None:
        asked = await self.under_way(node_call, 2)
        await node_call.node.view.apply([BrokerVanished(7)])
        me = node_call.node.config.id
        await node_call.place("t", (me, 7), isr=(me,))
        assert await asyncio.wait_for(asked, 20) == (ErrorCode.none, 2)

    async def test_only_committed_records_can_be_deleted(self, node_call: Any) -> None:
        await node_call.produce("t", node_call.batch(b"v"), acks=1)
        assert await delete(node_call, 4) == (ErrorCode.offset_out_of_range, -1)
        asked = await self.under_way(node_call, -1)
        await node_call.copied(7, 3, 3)
        assert await asyncio.wait_for(asked, 20) == (ErrorCode.none, 3)


async def test_records_of_internal_topics_cannot_be_deleted(node_call: Any) -> None:
    await node_call.create("__consumer_offsets")
    assert await delete(node_call, 0, topic="__consumer_offsets") == (
        ErrorCode.invalid_topic_exception,
        -1,
    )
