from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 23


async def ask(
    node_call: Any, epoch: int, version: int = 4, current: int = -1, topic: str = "t"
) -> tuple[ErrorCode, int, int]:
    """Error, epoch and its end offset."""
    build = node_call.request(KEY, version)
    partition = build.OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current
    )
    topics = (build.OffsetForLeaderTopic(topic=topic, partitions=(partition,)),)
    answer = await node_call.ask(build.OffsetForLeaderEpochRequest(replica_id=-1, topics=topics))
    found = answer.topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.mark.parametrize("version", range(2, 5))
async def test_every_version_returns_the_end_of_the_current_epoch(
    node_call: Any, version: int
) -> None:
    await node_call.produce("t", node_call.batch(b"a", b"b"))
    assert await ask(node_call, 0, version) == (ErrorCode.none, 0, 2)
    assert await ask(node_call, 0, version, current=0) == (ErrorCode.none, 0, 2)


async def test_unknown_epochs_and_partitions(node_call: Any) -> None:
    assert await ask(node_call, 7) == (ErrorCode.none, -1, -1)
    assert await ask(node_call, 0, current=7) == (ErrorCode.unknown_leader_epoch, -1, -1)
    missing = await ask(node_call, 0, topic="none")
    assert missing == (ErrorCode.unknown_topic_or_partition, -1, -1)
