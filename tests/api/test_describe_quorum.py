from typing import Any

import pytest

from ottla.config.listener import Endpoint
from ottla.controller.image import BrokerAppeared, BrokerImage, ControllerChanged
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 55
METADATA = "__cluster_metadata"


async def ask(cluster: Any, version: int = 2, topic: str = METADATA, index: int = 0) -> Any:
    build = cluster.request(KEY, version)
    partitions = (build.PartitionData(partition_index=index),)
    topics = (build.TopicData(topic_name=topic, partitions=partitions),)
    answer = await cluster.ask(build.DescribeQuorumRequest(topics=topics))
    assert answer.error_code is ErrorCode.none
    return answer


@pytest.mark.parametrize("version", range(3))
async def test_the_controller_is_the_only_voter(cluster: Any, version: int) -> None:
    answer = await ask(cluster, version)
    (topic,) = answer.topics
    (found,) = topic.partitions
    assert (topic.topic_name, found.error_code) == (METADATA, ErrorCode.none)
    assert (found.leader_id, found.leader_epoch) == (cluster.config.id, 1)
    assert found.high_watermark == cluster.image.version
    (voter,) = found.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (cluster.config.id, cluster.image.version)
    if version >= 1:
        assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp == 1_000
    if version >= 2:
        (node,) = answer.nodes
        own = cluster.node.endpoints[0]
        (listener,) = node.listeners
        assert node.node_id == cluster.config.id
        assert (listener.name, listener.host, listener.port) == (own.name, own.host, own.port)


async def test_each_change_is_counted(cluster: Any) -> None:
    before = (await ask(cluster)).topics[0].partitions[0].high_watermark
    await cluster.create(NewTopic("t", 1, 1))
    assert (await ask(cluster)).topics[0].partitions[0].high_watermark == before + 1


async def test_the_next_controller_is_the_leader_with_its_epoch(cluster: Any) -> None:
    endpoint = Endpoint("PLAINTEXT", "two.example.org", 9095)
    delta = [BrokerAppeared(BrokerImage(2, (endpoint,))), ControllerChanged(2, 7)]
    await cluster.node.view.apply(delta)
    answer = await ask(cluster)
    found = answer.topics[0].partitions[0]
    assert (found.leader_id, found.leader_epoch) == (2, 7)
    assert answer.nodes[0].listeners[0].host == "two.example.org"


async def test_a_controller_that_is_not_registered_has_no_address(cluster: Any) -> None:
    await cluster.node.view.apply([ControllerChanged(9, 7)])
    (node,) = (await ask(cluster)).nodes
    assert (node.node_id, node.listeners) == (9, ())


@pytest.mark.parametrize(("topic", "index"), [("t", 0), (METADATA, 1)])
async def test_other_partitions_have_no_quorum(cluster: Any, topic: str, index: int) -> None:
    answer = await ask(cluster, topic=topic, index=index)
    found = answer.topics[0].partitions[0]
    assert found.error_code is ErrorCode.unknown_topic_or_partition
    assert found.current_voters == ()
