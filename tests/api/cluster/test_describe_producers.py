from typing import Any

from ottla.protocol.errors import ErrorCode

KEY = 61


async def ask(node_call: Any) -> tuple[ErrorCode, list[int]]:
    """Error and the producers of t-0."""
    build = node_call.request(KEY, 0)
    topics = (build.TopicRequest(name="t", partition_indexes=(0,)),)
    answer = await node_call.ask(build.DescribeProducersRequest(topics=topics))
    (found,) = answer.topics[0].partitions
    return found.error_code, [each.producer_id for each in found.active_producers]


async def test_any_replica_describes_producers(node_call: Any) -> None:
    own = node_call.node.config.id
    batch = node_call.batch(b"v", producer_id=4, producer_epoch=0, base_sequence=0)
    await node_call.produce("t", batch)
    for replicas in ((own, 7), (7, own)):
        await node_call.place("t", replicas)
        assert await ask(node_call) == (ErrorCode.none, [4]), replicas


async def test_a_broker_without_a_replica_refuses(node_call: Any) -> None:
    await node_call.place("t", (7, 8))
    assert await ask(node_call) == (ErrorCode.not_leader_or_follower, [])
