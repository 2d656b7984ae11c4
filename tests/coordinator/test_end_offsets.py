from typing import Any

from ottla.coordinator.end_offsets import EndOffsets
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

LEADERS = {("t", 0): 1, ("t", 1): 2, ("u", 0): 1, ("u", 1): 3}


async def test_each_leader_is_asked_once() -> None:
    asked = []

    async def ask(broker: int, request: Any) -> Any:
        asked.append(broker)
        if broker == 3:
            raise PeerError("no connection")
        build = messages_of(2, 7)
        code = ErrorCode.none if broker == 1 else ErrorCode.not_leader_or_follower
        return build.ListOffsetsResponse(
            topics=tuple(
                build.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        build.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, error_code=code, offset=7
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    ends = EndOffsets(lambda topic, index: LEADERS.get((topic, index)), ask)
    found = await ends.of([*LEADERS, ("x", 0)])
    assert sorted(asked) == [1, 2, 3]
    assert (found["t", 0], found["u", 0]) == (7, 7)
    codes = {key: end.code for key, end in found.items() if isinstance(end, ApiError)}
    assert codes == {
        ("t", 1): ErrorCode.not_leader_or_follower,
        ("u", 1): ErrorCode.network_exception,
        ("x", 0): ErrorCode.leader_not_available,
    }
