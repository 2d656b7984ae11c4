from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 35


async def ask(node_call: Any, version: int, topics: Any) -> Any:
    build = node_call.request(KEY, version)
    if topics is not None:
        topics = tuple(
            build.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics
        )
    (result,) = (await node_call.ask(build.DescribeLogDirsRequest(topics=topics))).results
    return result


@pytest.mark.parametrize("version", range(1, 6))
async def test_every_version_returns_sizes(node_call: Any, version: int) -> None:
    await node_call.produce("t", node_call.batch(bytes(1000)))
    result = await ask(node_call, version, None)
    assert result.error_code is ErrorCode.none
    assert result.log_dir == str(node_call.node.config.data_folder)
    (topic,) = result.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.offset_lag) == ("t", 0, 0)
    assert partition.partition_size == node_call.node.partitions.find("t", 0).log.size_bytes > 1000
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes


async def test_only_requested_partitions(node_call: Any) -> None:
    await node_call.create("u", 3)
    result = await ask(node_call, 4, [("u", (0, 2, 9)), ("none", (0,))])
    (topic,) = result.topics
    assert [each.partition_index for each in topic.partitions] == [0, 2]
    assert (await ask(node_call, 4, [])).topics == ()
