from typing import Any

from ottla.protocol.errors import ErrorCode

KEY = 61


async def ask(node_call: Any, topic: str, *indexes: int) -> Any:
    build = node_call.request(KEY, 0)
    topics = (build.TopicRequest(name=topic, partition_indexes=indexes),)
    answer = await node_call.ask(build.DescribeProducersRequest(topics=topics))
    return answer.topics[0].partitions


async def test_the_state_of_each_producer(node_call: Any) -> None:
    for producer_id in (7, 8):
        batch = node_call.batch(
            b"a", b"b", producer_id=producer_id, producer_epoch=3, base_sequence=0
        )
        await node_call.produce("t", batch)
    await node_call.produce("t", node_call.batch(b"of nobody"))
    (partition,) = await ask(node_call, "t", 0)
    assert partition.error_code is ErrorCode.none
    for producer, producer_id in zip(partition.active_producers, (7, 8), strict=True):
        assert (producer.producer_id, producer.producer_epoch) == (producer_id, 3)
        assert (producer.last_sequence, producer.last_timestamp) == (1, 1_001)
        assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)


async def test_open_and_ended_transactions(node_call: Any) -> None:
    held = node_call.node.partitions.get("t", 0)
    await node_call.produce("t", node_call.batch(b"of nobody"))
    for producer_id in (7, 8):
        guard = held.appends.begin_verification(producer_id, 3, 0, version_2=True)
        batch = node_call.batch(
            b"a",
            producer_id=producer_id,
            producer_epoch=3,
            base_sequence=0,
            is_transactional=True,
        )
        held.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)
    held.appends.append_marker(8, 4, is_commit=True, coordinator_epoch=5, transaction_version=2)
    (partition,) = await ask(node_call, "t", 0)
    open_one, ended = partition.active_producers
    assert (open_one.current_txn_start_offset, open_one.coordinator_epoch) == (1, -1)
    assert (ended.current_txn_start_offset, ended.coordinator_epoch) == (-1, 5)
    assert (ended.producer_epoch, ended.last_sequence) == (4, -1), "a new epoch has no sequence"
    assert ended.last_timestamp > 1_000


async def test_unknown_partitions(node_call: Any) -> None:
    here, missing = await ask(node_call, "t", 0, 5)
    assert (here.error_code, here.active_producers) == (ErrorCode.none, ())
    assert missing.error_code is ErrorCode.unknown_topic_or_partition
    assert missing.error_message is None
    (missing,) = await ask(node_call, "none", 0)
    assert missing.error_code is ErrorCode.unknown_topic_or_partition
    assert missing.error_message == "This server does not host this topic-partition."


async def test_an_invalid_topic(node_call: Any) -> None:
    (partition,) = await ask(node_call, "no such topic", 0)
    assert partition.error_code is ErrorCode.invalid_topic_exception


async def test_each_partition_is_answered_once(node_call: Any) -> None:
    for producer_id in range(1_200):
        batch = node_call.batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        await node_call.produce("t", batch)
    build = node_call.request(KEY, 0)
    topic = build.TopicRequest(name="t", partition_indexes=(0, 0, 5, 0))
    answer = await node_call.ask(build.DescribeProducersRequest(topics=(topic, topic)))
    first, again = answer.topics
    assert [each.partition_index for each in first.partitions] == [0, 5]
    assert [each.producer_id for each in first.partitions[0].active_producers] == list(range(1_200))
    assert again.partitions == ()
