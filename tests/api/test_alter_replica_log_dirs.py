from typing import Any
from uuid import UUID

import pytest

from ottla.controller.image import PartitionState, TopicImage
from ottla.protocol.errors import ErrorCode

KEY = 34


async def alter(
    node_call: Any, *dirs: tuple[str, str, tuple[int, ...]], version: int = 2
) -> dict[tuple[str, int], ErrorCode]:
    """`dirs`: path, topic, partitions. The code of each partition."""
    build = node_call.request(KEY, version)
    asked = tuple(
        build.AlterReplicaLogDir(
            path=path, topics=(build.AlterReplicaLogDirTopic(name=topic, partitions=indexes),)
        )
        for path, topic, indexes in dirs
    )
    answer = await node_call.ask(build.AlterReplicaLogDirsRequest(dirs=asked))
    names = [topic.topic_name for topic in answer.results]
    assert len(set(names)) == len(names)
    found = [(topic.topic_name, part) for topic in answer.results for part in topic.partitions]
    codes = {(name, part.partition_index): part.error_code for name, part in found}
    assert len(codes) == len(found)
    return codes


@pytest.fixture
def folder(node_call: Any) -> str:
    return str(node_call.node.config.data_folder)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_replica_is_in_the_requested_folder(
    node_call: Any, folder: str, version: int
) -> None:
    await node_call.create("u", 3)
    codes = await alter(node_call, (folder, "u", (0, 2)), (folder, "t", (0,)), version=version)
    assert codes == dict.fromkeys([("u", 0), ("u", 2), ("t", 0)], ErrorCode.none)


async def test_an_unknown_folder(node_call: Any, folder: str) -> None:
    for path in (f"{folder}-2", f"{folder}/", "", "data"):
        codes = await alter(node_call, (path, "t", (0,)), (path, "none", (0,)))
        assert set(codes.values()) == {ErrorCode.log_dir_not_found}, path


async def test_an_unknown_partition(node_call: Any, folder: str) -> None:
    assert await alter(node_call, (folder, "t", (0, 1)), (folder, "none", (0,))) == {
        ("t", 0): ErrorCode.none,
        ("t", 1): ErrorCode.unknown_topic_or_partition,
        ("none", 0): ErrorCode.unknown_topic_or_partition,
    }


async def test_a_partition_on_another_broker(node_call: Any, folder: str) -> None:
    state = PartitionState(9, 0, (9,), (9,), 0)
    topic = TopicImage("elsewhere", UUID(int=7), (state,), {})
    node_call.node.image.topics["elsewhere"] = topic
    codes = await alter(node_call, (folder, "elsewhere", (0, 1)))
    assert codes["elsewhere", 0] is ErrorCode.replica_not_available
    assert codes["elsewhere", 1] is ErrorCode.unknown_topic_or_partition


async def test_a_name_too_long_for_a_moving_replicas_folder(node_call: Any, folder: str) -> None:
    """`<topic>-0.<32 digits>-future` has 42 characters beside the topic's, of 255."""
    for path in (folder, "elsewhere"):
        codes = await alter(node_call, (path, "x" * 214, (0,)))
        assert codes == {("x" * 214, 0): ErrorCode.invalid_topic_exception}
    await node_call.create("x" * 213)
    assert await alter(node_call, (folder, "x" * 213, (0,))) == {("x" * 213, 0): ErrorCode.none}


async def test_the_last_requested_folder_counts(node_call: Any, folder: str) -> None:
    for first, last, code in (
        ("elsewhere", folder, ErrorCode.none),
        (folder, "elsewhere", ErrorCode.log_dir_not_found),
    ):
        assert await alter(node_call, (first, "t", (0,)), (last, "t", (0,))) == {("t", 0): code}
