"""The requests between brokers about the states of share partitions, through the codec."""

from typing import Any

import pytest

from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import SHARE_TOPIC
from ottla.share.stored import ShareKey

OK = ErrorCode.none
STRUCTS = {
    83: ("InitializeShareGroupState", "InitializeStateData"),
    84: ("ReadShareGroupState", "ReadStateData"),
    85: ("WriteShareGroupState", "WriteStateData"),
    86: ("DeleteShareGroupState", "DeleteStateData"),
    87: ("ReadShareGroupStateSummary", "ReadStateSummaryData"),
}


async def ask(node_call: Any, key: int, version: int = 0, group: str = "g", **fields: Any) -> Any:
    """The answer about partition 0 of topic "t"."""
    build = node_call.request(key, version)
    name, topic_struct = STRUCTS[key]
    if "state_batches" in fields:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        fields["state_batches"] = tuple(
            build.StateBatch(**dict(zip(names, each, strict=True)))
            for each in fields["state_batches"]
        )
    partition = build.PartitionData(**{"partition": 0, **fields})
    topic = getattr(build, topic_struct)(topic_id=node_call.topic_id("t"), partitions=(partition,))
    request = getattr(build, f"{name}Request")(group_id=group, topics=(topic,))
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "", 0, broker_id=2)
    response = await node_call.ask(request, session=session)
    if not response.results:
        return None
    return response.results[0].partitions[0]


@pytest.fixture
async def shares(start_node: Any) -> Any:
    node_call = await start_node(share_coordinator_state_topic_num_partitions="2")
    await node_call.create("t")
    outcome = await node_call.node.topic_creation.ensure_share_topic()
    assert not outcome.failed
    return node_call


async def test_a_state_from_its_beginning_to_its_end(shares: Any) -> None:
    begun = await ask(shares, 83, state_epoch=1, start_offset=5)
    assert (begun.partition, begun.error_code, begun.error_message) == (0, OK, None)
    assert (await ask(shares, 84, leader_epoch=3)).start_offset == 5
    for version in (0, 1):
        written = await ask(
            shares,
            85,
            version,
            state_epoch=1,
            leader_epoch=3,
            start_offset=5 + version,
            delivery_complete_count=2,
            state_batches=[(5, 7, 2, 1), (8, 8, 0, 2)],
        )
        assert written.error_code is OK
    read = await ask(shares, 84, leader_epoch=3)
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in read.state_batches
    ]
    assert (read.state_epoch, read.start_offset) == (1, 6)
    assert batches == [(6, 7, 2, 1), (8, 8, 0, 2)]
    for version in (0, 1):
        found = await ask(shares, 87, version, leader_epoch=-1)
        assert (found.state_epoch, found.leader_epoch, found.start_offset) == (1, 3, 6)
    assert found.delivery_complete_count == 2
    assert (await ask(shares, 86)).error_code is OK
    assert (await ask(shares, 87, leader_epoch=-1)).start_offset == -1


async def test_what_is_refused_has_its_reason(shares: Any) -> None:
    refused = await ask(shares, 84, leader_epoch=3)
    assert refused.error_code is ErrorCode.invalid_request
    assert refused.error_message == "The share partition has not been initialized."
    unknown = await ask(shares, 83, partition=9, state_epoch=1, start_offset=0)
    assert unknown.error_code is ErrorCode.unknown_topic_or_partition
    await ask(shares, 83, state_epoch=1, start_offset=5)
    for batch in ((5, 7, 1, 1), (5, 7, 9, 1), (7, 5, 2, 1), (-1, 5, 2, 1)):
        written = await ask(
            shares, 85, state_epoch=1, leader_epoch=3, start_offset=5, state_batches=[batch]
        )
        assert written.error_code is ErrorCode.invalid_request
    write: dict[str, Any] = {"start_offset": 5, "state_batches": []}
    negatives: tuple[tuple[int, str, dict[str, Any]], ...] = (
        (83, "state", {"state_epoch": -1, "start_offset": 5}),
        (84, "leader", {"leader_epoch": -1}),
        (85, "leader", {"leader_epoch": -1, "state_epoch": 1, **write}),
        (85, "state", {"leader_epoch": 3, "state_epoch": -1, **write}),
    )
    for key, name, fields in negatives:
        negative = await ask(shares, key, **fields)
        assert negative.error_code is ErrorCode.invalid_request
        assert negative.error_message == f"The {name} epoch cannot be a negative number."


async def test_a_request_without_a_group_has_an_empty_answer(shares: Any) -> None:
    assert await ask(shares, 86, group="") is None


async def test_the_topic_is_made_as_in_kafka(shares: Any) -> None:
    topic = shares.node.image.topic(SHARE_TOPIC)
    assert len(topic.partitions) == 2
    assert dict(topic.overrides) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


async def test_the_coordinator_of_a_share_partition_is_found(start_node: Any) -> None:
    node_call = await start_node()
    build = node_call.request(10, 6)
    good = "a:b:ABEiM0RVZneImaq7zN3u_w:3"
    keys = (good, "g", ":ABEiM0RVZneImaq7zN3u_w:3", "g:x:3", "g:ABEiM0RVZneImaq7zN3u_w:x")
    request = build.FindCoordinatorRequest(key_type=2, coordinator_keys=keys)
    answer = await node_call.ask(request)
    codes = [each.error_code for each in answer.coordinators]
    assert codes == [OK, *[ErrorCode.invalid_request] * 4]
    assert answer.coordinators[0].node_id == node_call.node.config.id
    assert node_call.node.image.topic(SHARE_TOPIC) is not None
    build = node_call.request(10, 5)
    answer = await node_call.ask(build.FindCoordinatorRequest(key_type=2, coordinator_keys=(good,)))
    assert answer.coordinators[0].error_code is ErrorCode.invalid_request


async def test_the_persister_reaches_this_broker(start_node: Any) -> None:
    node_call = await start_node()
    await node_call.create("t")
    persister = node_call.node.shares.persister
    key = ShareKey("g", node_call.topic_id("t"), 0)
    await persister.initialize(key, 1, 5)
    assert (await persister.read(key, 3)).start_offset == 5
