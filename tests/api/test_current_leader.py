"""The leader beside an error, over the wire of Fetch and Produce (KIP-951)."""

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

FETCH, PRODUCE = 1, 0


async def fetch(node_call: Any, version: int, **changes: Any) -> Any:
    """The whole answer, of a fetch of t-0."""
    build = node_call.request(FETCH, version)
    partition = build.FetchPartition(
        partition=0,
        **{
            "fetch_offset": 0,
            "partition_max_bytes": 1 << 20,
            "current_leader_epoch": -1,
            **changes,
        },
    )
    named = {"topic_id": node_call.topic_id("t")} if version >= 13 else {"topic": "t"}
    topics = (build.FetchTopic(**named, partitions=(partition,)),)
    asked = build.FetchRequest(
        topics=topics, max_wait=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1
    )
    return await node_call.ask(asked)


async def produce(node_call: Any, version: int) -> Any:
    """The whole answer, of a produce to t-0."""
    build = node_call.request(PRODUCE, version)
    data = (build.PartitionProduceData(index=0, records=node_call.batch(b"a")),)
    named = {"topic_id": node_call.topic_id("t")} if version >= 13 else {"name": "t"}
    topics = (build.TopicProduceData(**named, partition_data=data),)
    return await node_call.ask(build.ProduceRequest(acks=-1, timeout=1000, topic_data=topics))


def told(part: Any) -> tuple[int, int]:
    return part.current_leader.leader_id, part.current_leader.leader_epoch


def endpoints(answer: Any) -> list[tuple[int, str, int, str | None]]:
    return [(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]


@pytest.fixture
async def moved(node_call: Any) -> int:
    """Broker 7 leads t-0, this broker copies it; returns the leader epoch."""
    await node_call.appear(7, rack="b")
    await node_call.appear(8)
    state = await node_call.place("t", (7, node_call.node.config.id))
    epoch: int = state.leader_epoch
    return epoch


BROKER_7 = (7, "broker-7.invalid", 9092, "b")


@pytest.mark.parametrize("version", range(12, 19))
async def test_a_fetch_error_names_the_leader(node_call: Any, moved: int, version: int) -> None:
    # A consumer may read here: an old leader epoch refers it to the leader.
    answer = await fetch(node_call, version, current_leader_epoch=moved - 1)
    (part,) = answer.responses[0].partitions
    assert part.error_code is ErrorCode.fenced_leader_epoch
    assert told(part) == (7, moved)
    if version >= 16:
        assert endpoints(answer) == [BROKER_7]


@pytest.mark.parametrize("version", range(10, 14))
async def test_a_produce_error_names_the_leader(node_call: Any, moved: int, version: int) -> None:
    answer = await produce(node_call, version)
    (part,) = answer.responses[0].partition_responses
    assert (part.error_code, part.base_offset) == (ErrorCode.not_leader_or_follower, -1)
    assert told(part) == (7, moved)
    assert endpoints(answer) == [BROKER_7]


@pytest.mark.parametrize(("fetch_version", "produce_version"), [(16, 12), (18, 13)])
async def test_the_leader_of_a_partition_on_other_brokers_is_named(
    node_call: Any, fetch_version: int, produce_version: int
) -> None:
    """The replica was moved, but the client does not know it yet."""
    await node_call.appear(7, rack="b")
    state = await node_call.place("t", (7, 8))
    answer = await fetch(node_call, fetch_version)
    (part,) = answer.responses[0].partitions
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert (told(part), endpoints(answer)) == ((7, state.leader_epoch), [BROKER_7])
    answer = await produce(node_call, produce_version)
    (part,) = answer.responses[0].partition_responses
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert (told(part), endpoints(answer)) == ((7, state.leader_epoch), [BROKER_7])


async def test_older_versions_have_only_the_error(node_call: Any, moved: int) -> None:
    fetched = await fetch(node_call, 10)
    assert fetched.responses[0].partitions[0].error_code is ErrorCode.not_leader_or_follower
    produced = await produce(node_call, 9)
    code = produced.responses[0].partition_responses[0].error_code
    assert code is ErrorCode.not_leader_or_follower


async def test_without_a_leader_none_is_named(node_call: Any) -> None:
    await node_call.place("t", (7, node_call.node.config.id), leader=-1)
    fetched = await fetch(node_call, 16)
    (part,) = fetched.responses[0].partitions
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert (told(part), endpoints(fetched)) == ((-1, -1), [])
    produced = await produce(node_call, 10)
    (part,) = produced.responses[0].partition_responses
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert (told(part), endpoints(produced)) == ((-1, -1), [])


async def test_without_an_error_no_leader_is_named(node_call: Any) -> None:
    produced = await produce(node_call, 13)
    (part,) = produced.responses[0].partition_responses
    assert (part.error_code, told(part), endpoints(produced)) == (ErrorCode.none, (-1, -1), [])
    fetched = await fetch(node_call, 18)
    (part,) = fetched.responses[0].partitions
    assert (part.error_code, told(part), endpoints(fetched)) == (ErrorCode.none, (-1, -1), [])


async def test_another_error_names_no_leader(node_call: Any) -> None:
    fetched = await fetch(node_call, 16, fetch_offset=99)
    (part,) = fetched.responses[0].partitions
    assert part.error_code is ErrorCode.offset_out_of_range
    assert (told(part), endpoints(fetched)) == ((-1, -1), [])


async def test_a_leader_without_this_listener_has_no_address(
    node_call: Any,
) -> None:
    await node_call.appear(7, listener="REPLICATION")
    state = await node_call.place("t", (7, node_call.node.config.id))
    answer = await produce(node_call, 10)
    (part,) = answer.responses[0].partition_responses
    assert told(part) == (7, state.leader_epoch)
    assert endpoints(answer) == []
