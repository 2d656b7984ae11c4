"""The two requests about a leader's log, and partitions that get no answer."""

from types import SimpleNamespace
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.replica.replica_offsets import leader_offsets


async def test_start_and_end_of_each_partition_without_an_error() -> None:
    asked = []

    async def ask(request: Any, timeout_ms: int) -> Any:
        build = messages_of(2, 9)
        assert request.replica_id == 3
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                asked.append((topic.name, each.partition_index, each.timestamp))
                refused = (each.partition_index, each.timestamp) == (1, -2)
                answers.append(
                    build.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.not_leader_or_follower if refused else ErrorCode.none,
                        offset=-1 if refused else 10 + each.timestamp,
                    )
                )
            topics.append(
                build.ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers))
            )
        return build.ListOffsetsResponse(topics=tuple(topics))

    peer: Any = SimpleNamespace(ask=ask)
    partitions: Any = [
        SimpleNamespace(topic="t", index=0, leader_epoch=4),
        SimpleNamespace(topic="t", index=1, leader_epoch=4),
    ]
    assert await leader_offsets(peer, 3, partitions, 1_000) == {("t", 0): (8, 9)}
    assert asked == [("t", 0, -1), ("t", 1, -1), ("t", 0, -2), ("t", 1, -2)]
