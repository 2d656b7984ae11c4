import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.turns import most_calls_at_once

from ottla.api.metadata import (
    CLUSTER_OPERATIONS,
    OPERATIONS_NOT_REQUESTED,
    TOPIC_OPERATIONS,
    handle,
)
from ottla.controller.image import (
    BrokerVanished,
    PartitionState,
    TopicConfigChanged,
    TopicCreated,
    TopicImage,
)
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.network.client_session import ClientSession
from ottla.network.peer import Probe
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

KEY = 3
NO_CREATION = {"allow_auto_topic_creation": False}


def request(cluster: Any, version: int, names: list[str] | None, **more: Any) -> Any:
    build = cluster.request(KEY, version)
    topics = names if names is None else tuple(build.MetadataRequestTopic(name=n) for n in names)
    return build.MetadataRequest(topics=topics, **more)


@pytest.mark.parametrize("version", range(14))
async def test_every_version_lists_brokers_topics_and_leaders(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    answer = await cluster.ask(request(cluster, version, ["t"]))
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "reached.example.org", 19092)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name) == (ErrorCode.none, "t")
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert partition.error_code is ErrorCode.none
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (
            1,
            (1,),
            (1,),
        )
    if version >= 1:
        assert answer.controller_id == 1
        assert topic.is_internal is False
    if version >= 2:
        assert answer.cluster_id == cluster.image.cluster_id
    if version >= 8:
        assert topic.topic_authorized_operations == OPERATIONS_NOT_REQUESTED
    if version >= 10:
        assert topic.topic_id == cluster.image.topics["t"].topic_id


@pytest.mark.parametrize(
    ("version", "names", "told"),
    [(0, [], 2), (1, [], 0), (1, None, 2), (12, [], 0), (12, None, 2)],
)
async def test_a_request_for_all_topics(
    cluster: Any, version: int, names: list[str] | None, told: int
) -> None:
    await cluster.create(NewTopic("t", 1, 1), NewTopic("u", 1, 1))
    answer = await cluster.ask(request(cluster, version, names))
    assert len(answer.topics) == told


async def test_a_topic_named_twice_is_returned_once(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    answer = await cluster.ask(request(cluster, 9, ["t", "t", "u", "u"], **NO_CREATION))
    assert [topic.name for topic in answer.topics] == ["t", "u"]


async def test_topics_by_id(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    build = cluster.request(KEY, 12)
    unknown = UUID(int=77)
    topics = tuple(
        build.MetadataRequestTopic(topic_id=topic_id, name=None)
        for topic_id in (cluster.image.topics["t"].topic_id, unknown, None)
    )
    answer = await cluster.ask(build.MetadataRequest(topics=topics))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("t", ErrorCode.none),
        (None, ErrorCode.unknown_topic_id),
        ("", ErrorCode.invalid_request),
    ]
    assert answer.topics[1].topic_id == unknown


async def test_an_id_in_a_version_without_ids_is_refused(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    build = cluster.request(KEY, 10)
    topic_id = cluster.image.topics["t"].topic_id
    topics = (build.MetadataRequestTopic(topic_id=topic_id, name="t"),)
    answer = await cluster.ask(build.MetadataRequest(topics=topics))
    assert answer.topics[0].error_code is ErrorCode.invalid_request


async def test_unknown_topics_are_created_and_returned_at_once(cluster: Any) -> None:
    answer = await cluster.ask(request(cluster, 12, ["new", "a b"], allow_auto_topic_creation=True))
    new, bad = answer.topics
    assert (new.error_code, len(new.partitions)) == (ErrorCode.none, 1)
    assert bad.error_code is ErrorCode.invalid_topic_exception
    assert set(cluster.image.topics) == {"new"}


async def test_the_topic_of_kraft_is_unknown_and_not_created(cluster: Any) -> None:
    asked = request(cluster, 12, ["__cluster_metadata"], allow_auto_topic_creation=True)
    (answer,) = (await cluster.ask(asked)).topics
    assert answer.error_code is ErrorCode.unknown_topic_or_partition
    assert set(cluster.image.topics) == set()


async def test_a_topic_that_cannot_be_created_now(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_controller(names: list[str]) -> dict[str, Outcome]:
        raise ApiError(ErrorCode.not_controller)

    async def deleted_again(names: list[str]) -> dict[str, Outcome]:
        return dict.fromkeys(names, DONE)

    for creation, code in (
        (no_controller, ErrorCode.not_controller),
        (deleted_again, ErrorCode.leader_not_available),
    ):
        monkeypatch.setattr(cluster.node.topic_creation, "auto_create", creation)
        answer = await cluster.ask(request(cluster, 12, ["new"], allow_auto_topic_creation=True))
        (new,) = answer.topics
        assert (new.name, new.error_code, new.partitions) == ("new", code, ())


async def test_the_offsets_topic_is_created_with_its_settings(start_cluster: Any) -> None:
    cluster = await start_cluster(offsets_topic_num_partitions="3")
    answer = await cluster.ask(request(cluster, 3, ["__consumer_offsets"]))
    assert answer.topics[0].is_internal
    assert len(answer.topics[0].partitions) == 3
    assert cluster.image.topics["__consumer_offsets"].overrides["cleanup.policy"] == "compact"


async def test_the_client_and_the_broker_can_forbid_creation(
    cluster: Any, start_cluster: Any
) -> None:
    asked = request(cluster, 12, ["new", "..", "__consumer_offsets"], **NO_CREATION)
    answer = await cluster.ask(asked)
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_topic_exception,
        ErrorCode.unknown_topic_or_partition,
    ]
    assert answer.topics[2].is_internal
    strict = await start_cluster(auto_create_topics_enable="false")
    answer = await strict.ask(request(strict, 12, ["new"], allow_auto_topic_creation=True))
    assert answer.topics[0].error_code is ErrorCode.unknown_topic_or_partition
    assert strict.image.topics == {}


async def test_a_request_for_all_topics_creates_none(cluster: Any) -> None:
    answer = await cluster.ask(request(cluster, 12, None, allow_auto_topic_creation=True))
    assert answer.topics == ()


async def test_operations_are_returned_on_request(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    answer = await cluster.ask(
        request(
            cluster,
            9,
            ["t"],
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
    )
    assert answer.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
    assert answer.topics[0].partitions[0].leader_id == 1
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS
    answer = await cluster.ask(request(cluster, 9, ["t"]))
    assert answer.topics[0].topic_authorized_operations == OPERATIONS_NOT_REQUESTED


async def test_a_dead_leader_is_not_named(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    await cluster.ask(request(cluster, 12, ["t"]))
    cluster.image.apply(BrokerVanished(1))
    answer = await cluster.ask(request(cluster, 12, ["t"]))
    (partition,) = answer.topics[0].partitions
    assert partition.error_code is ErrorCode.leader_not_available
    assert (partition.leader_id, partition.offline_replicas) == (-1, (1,))


@pytest.mark.parametrize("version", range(14))
async def test_a_leader_without_the_clients_listener_is_listener_not_found(
    node_call: Any, version: int
) -> None:
    """KIP-103: it is live, and others reach it; this client learns that the settings are why."""
    own = node_call.node.config.id
    await node_call.appear(7, listener="REPLICATION")
    state = await node_call.place("t", (7, own))
    asked = request(node_call, version, ["t"])
    answer = await node_call.ask(asked)
    assert [broker.node_id for broker in answer.brokers] == [own]
    (partition,) = answer.topics[0].partitions
    assert partition.error_code is (
        ErrorCode.listener_not_found if version >= 6 else ErrorCode.leader_not_available
    )
    everybody = (7, own) if version else (own,)
    assert (partition.leader_id, partition.replica_nodes) == (-1, everybody)
    assert partition.isr_nodes == everybody
    if version >= 5:
        assert partition.offline_replicas == (7,)
    if version >= 7:
        assert partition.leader_epoch == state.leader_epoch
    # The cache for one listener's clients is not used for another's.
    (partition,) = (await node_call.ask(asked, "REPLICATION")).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.none, 7)
    # Once it is dead, the error is no longer about the listener.
    await node_call.node.view.apply([BrokerVanished(7)])
    (partition,) = (await node_call.ask(asked)).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.leader_not_available, -1)
    # It returns with the same number and the listener.
    await node_call.appear(7)
    (partition,) = (await node_call.ask(asked)).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.none, 7)


@pytest.mark.parametrize("version", range(14))
async def test_an_unreachable_follower_is_offline(node_call: Any, version: int) -> None:
    own = node_call.node.config.id
    await node_call.appear(7, listener="REPLICATION")
    await node_call.place("t", (own, 7, 8), isr=(own, 7))
    answer = await node_call.ask(request(node_call, version, ["t"]))
    (partition,) = answer.topics[0].partitions
    assert partition.leader_id == own
    # v0 lists only reachable replicas, with an error if some are missing.
    if version == 0:
        assert partition.error_code is ErrorCode.replica_not_available
        assert (partition.replica_nodes, partition.isr_nodes) == ((own,), (own,))
    else:
        assert partition.error_code is ErrorCode.none
        assert (partition.replica_nodes, partition.isr_nodes) == ((own, 7, 8), (own, 7))
    if version >= 5:
        assert partition.offline_replicas == (7, 8)


async def test_a_departed_broker_is_visible_for_a_while_without_leading(node_call: Any) -> None:
    """If one response has both changes, librdkafka loses the partition for a second."""
    own = node_call.node.config.id
    await node_call.appear(7)
    await node_call.place("t", (7, own))
    await node_call.node.view.apply([BrokerVanished(7)])
    answer = await node_call.ask(request(node_call, 12, ["t"]))
    assert [broker.node_id for broker in answer.brokers] == [own, 7]
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.offline_replicas) == (-1, (7,))
    build = node_call.request(60, 0)
    described = await node_call.ask(build.DescribeClusterRequest())
    assert [broker.broker_id for broker in described.brokers] == [own]


async def test_the_response_waits_for_an_election_after_a_broken_connection(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    cluster.node.peers.lost_at = lambda broker_id: asyncio.get_running_loop().time() + 60
    asking = asyncio.create_task(cluster.ask(request(cluster, 12, ["t"])))
    while cluster.node.view.waiters is None:
        await asyncio.sleep(0)
    await cluster.node.view.apply([BrokerVanished(1)])
    (partition,) = (await asking).topics[0].partitions
    assert partition.leader_id == -1


async def test_the_response_waits_if_a_leader_refuses_connections(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process's listener may be closed before its connections are."""
    probed: list[tuple[str, int]] = []

    async def refused(host: str, port: int, _within_ms: int) -> Probe:
        probed.append((host, port))
        return Probe.REFUSED

    monkeypatch.setattr("ottla.network.peers.probe", refused)
    await node_call.appear(2)
    await node_call.place("t", (2, 1))
    build = node_call.request(KEY, 12)
    named = build.MetadataRequest(topics=(build.MetadataRequestTopic(name="t"),))
    asking = asyncio.create_task(node_call.ask(named))
    while not probed or node_call.node.view.waiters is None:
        await asyncio.sleep(0)
    await node_call.place("t", (1, 2))
    await node_call.node.view.apply([BrokerVanished(2)])
    (partition,) = (await asking).topics[0].partitions
    assert partition.leader_id == 1
    assert probed == [("broker-2.invalid", 9092)]
    await node_call.ask(build.MetadataRequest(topics=None))
    assert len(probed) == 1


async def test_the_wait_for_an_election_is_limited(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    cluster.node.peers.lost_at = lambda broker_id: asyncio.get_running_loop().time() - 60
    (partition,) = (await cluster.ask(request(cluster, 12, ["t"]))).topics[0].partitions
    assert partition.leader_id == 1


async def test_the_cache_follows_the_image(cluster: Any) -> None:
    for number in range(6):
        await cluster.create(NewTopic(f"t{number}", 1, 1))
    assert len((await cluster.ask(request(cluster, 12, None))).topics) == 6
    build = cluster.request(37, 3)
    more = build.CreatePartitionsTopic(name="t0", count=3, assignments=None)
    await cluster.ask(build.CreatePartitionsRequest(topics=(more,), timeout=1_000))
    answer = await cluster.ask(request(cluster, 12, None))
    assert len(answer.topics[0].partitions) == 3
    build = cluster.request(20, 5)
    names = tuple(f"t{number}" for number in range(1, 6))
    await cluster.ask(build.DeleteTopicsRequest(topic_names=names, timeout=1_000))
    answer = await cluster.ask(request(cluster, 12, None))
    assert [topic.name for topic in answer.topics] == ["t0"]


async def test_a_topic_of_many_partitions_does_not_hold_the_loop(cluster: Any) -> None:
    state = PartitionState(leader=1, leader_epoch=0, replicas=(1,), isr=(1,), partition_epoch=0)
    topic = TopicImage("u", uuid4(), (state,) * 40_000, {}, config_version=0)
    await cluster.node.view.apply([TopicCreated(topic)])
    context = RequestContext(
        broker=cluster.node,
        session=ClientSession(1, "127.0.0.1", "PLAINTEXT", "reached.example.org", 19092),
        version=12,
        client_id="tests",
        messages=messages_of(KEY, 12),
    )
    for names in (["u"], None):
        answer, most_calls = await most_calls_at_once(
            handle(request(cluster, 12, names, **NO_CREATION), context)
        )
        assert [len(each.partitions) for each in answer.topics] == [40_000]
        assert most_calls < 50_000
        # The next one is another image, and its answer not the one that is kept.
        changed = replace(topic, overrides={"retention.ms": "1"}, config_version=1)
        await cluster.node.view.apply([TopicConfigChanged(changed)])
