from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 21


async def delete(
    node_call: Any, offset: int, version: int = 2, topic: str = "t", index: int = 0
) -> tuple[ErrorCode, int]:
    """Error and low watermark."""
    build = node_call.request(KEY, version)
    partition = build.DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = (build.DeleteRecordsTopic(name=topic, partitions=(partition,)),)
    answer = await node_call.ask(build.DeleteRecordsRequest(topics=topics, timeout=1000))
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", range(3))
async def test_every_version_moves_the_start(node_call: Any, version: int) -> None:
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
