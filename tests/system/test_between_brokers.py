"""What only brokers may send, sent by a client to a real cluster of three: it gets nothing.

A stranger that is believed acknowledges records that no follower has, reads the whole metadata,
takes a healthy broker out of placement, fences producers, or is an administrator in an envelope.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.network.client_session import ClientSession
from ottla.network.envelope import wrapped
from ottla.network.peer import Peer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import write_request
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import BROKER_PROOF, JOURNEY_GROUPS, METADATA_DELTAS
from ottla.security.principal import Principal
from ottla.testing import Cluster

ADMIN = ClientSession(1, "10.9.8.7", "PLAINTEXT", "", 0, Principal("User", "admin"))
REFUSED = ErrorCode.cluster_authorization_failed
TOPIC = "t"


def codes_in(response: Any) -> set[ErrorCode]:
    """All error codes of a response."""
    found: set[ErrorCode] = set()
    for name in response.__dataclass_fields__:
        value = getattr(response, name)
        if isinstance(value, ErrorCode):
            found.add(value)
        for each in value if isinstance(value, tuple) else ():
            if hasattr(each, "__dataclass_fields__"):
                found |= codes_in(each)
    return found


WITHIN_MS = 20_000


class Stranger:
    """A client that knows the protocol and no secret."""

    def __init__(self, cluster: Cluster) -> None:
        self.addresses = {}
        for number, address in enumerate(cluster.bootstrap.split(","), 1):
            host, _, port = address.rpartition(":")
            self.addresses[number] = (host, int(port))

    def peer(self, broker_id: int) -> Peer:
        address = self.addresses[broker_id]
        return Peer("the broker", lambda: address, "stranger", max_frame_bytes=1 << 24)

    async def ask(self, broker_id: int, request: Any) -> Any:
        peer = self.peer(broker_id)
        try:
            return await peer.ask(request, WITHIN_MS)
        finally:
            peer.close()

    async def ask_json(self, broker_id: int, *questions: tuple[int, Any]) -> list[Any]:
        """The answers to questions on one connection."""
        peer = self.peer(broker_id)
        try:
            return [await peer.ask_json(*question, WITHIN_MS) for question in questions]
        finally:
            peer.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, proxies=False) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(60)
        running.wait_in_sync(TOPIC)
        yield running


@pytest.fixture(scope="module")
def stranger(cluster: Cluster) -> Stranger:
    return Stranger(cluster)


def fetch(topic_id: UUID, follower: int, version: int) -> Any:
    build = messages_of(1, version, "request")
    partition = build.FetchPartition(
        partition=0, fetch_offset=1 << 40, log_start_offset=0, partition_max_bytes=1
    )
    named = {"topic_id": topic_id} if version >= 13 else {"topic": TOPIC}
    sender = (
        {"replica_state": build.ReplicaState(replica_id=follower, replica_epoch=1)}
        if version >= 15
        else {"replica_id": follower}
    )
    return build.FetchRequest(
        max_wait=0,
        min_bytes=0,
        topics=(build.FetchTopic(partitions=(partition,), **named),),
        forgotten_topics_data=(),
        **sender,
    )


@pytest.mark.parametrize("version", [11, 17])
async def test_a_stranger_acknowledges_no_records(
    cluster: Cluster, stranger: Stranger, version: int
) -> None:
    leader = cluster.leader(TOPIC)
    topic_id = await id_of_topic(stranger, leader)
    for follower in {1, 2, 3} - {leader}:
        answer = await stranger.ask(leader, fetch(topic_id, follower, version))
        assert REFUSED in codes_in(answer)
        assert not any(each.records for named in answer.responses for each in named.partitions)


async def id_of_topic(stranger: Stranger, broker_id: int) -> UUID:
    build = messages_of(3, 12, "request")
    asked = build.MetadataRequest(topics=(build.MetadataRequestTopic(name=TOPIC),))
    found: UUID = (await stranger.ask(broker_id, asked)).topics[0].topic_id
    return found


def of_brokers() -> dict[str, Any]:
    """The other requests with a broker as their sender, valid but for that."""
    offsets = messages_of(2, 8, "request")
    epochs = messages_of(23, 4, "request")
    markers = messages_of(27, 1, "request")
    adds = messages_of(24, 4, "request")
    alters = messages_of(56, 3, "request")
    ids = messages_of(67, 0, "request")
    topics = messages_of(19, 7, "request")
    creation = topics.CreateTopicsRequest(
        topics=(topics.CreatableTopic(name="forged", num_partitions=1, replication_factor=1),),
        timeout=10_000,
    )
    return {
        "ListOffsets": offsets.ListOffsetsRequest(
            replica_id=2,
            topics=(
                offsets.ListOffsetsTopic(
                    name=TOPIC,
                    partitions=(offsets.ListOffsetsPartition(partition_index=0, timestamp=-1),),
                ),
            ),
        ),
        "OffsetForLeaderEpoch": epochs.OffsetForLeaderEpochRequest(
            replica_id=2,
            topics=(
                epochs.OffsetForLeaderTopic(
                    topic=TOPIC,
                    partitions=(epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0),),
                ),
            ),
        ),
        "WriteTxnMarkers": markers.WriteTxnMarkersRequest(
            markers=(
                markers.WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=30_000,
                    transaction_result=True,
                    topics=(markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=(0,)),),
                    coordinator_epoch=0,
                ),
            )
        ),
        "AddPartitionsToTxn": adds.AddPartitionsToTxnRequest(
            transactions=(
                adds.AddPartitionsToTxnTransaction(
                    transactional_id="t", producer_id=1, producer_epoch=1, topics=()
                ),
            )
        ),
        "AlterPartition": alters.AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=()),
        "AllocateProducerIds": ids.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1),
        "Envelope": wrapped(write_request(creation, 1, "forger")[4:], ADMIN),
    }


@pytest.mark.parametrize("name", of_brokers())
async def test_a_stranger_is_no_broker(cluster: Cluster, stranger: Stranger, name: str) -> None:
    request = of_brokers()[name]
    for broker_id in (cluster.controller(), cluster.leader(TOPIC)):
        codes = codes_in(await stranger.ask(broker_id, request))
        assert codes == {REFUSED}, codes


@pytest.mark.parametrize("key", [METADATA_DELTAS, JOURNEY_GROUPS])
async def test_a_stranger_learns_nothing(cluster: Cluster, stranger: Stranger, key: int) -> None:
    asked = {"broker": 2, "broker_epoch": 1, "controller_epoch": 1, "version": -1, "wait_ms": 0}
    for leaving in (False, True):
        question = (key, asked | {"want_shut_down": leaving})
        (answer,) = await stranger.ask_json(cluster.controller(), question)
        assert answer == {"error": REFUSED.name}


async def test_a_stranger_cannot_prove_to_be_a_broker(cluster: Cluster, stranger: Stranger) -> None:
    nonce = "AAAAAAAAAAAAAAAAAAAAAA=="
    accepted = cluster.controller()
    other = next(number for number in (1, 2, 3) if number != accepted)
    first = (BROKER_PROOF, {"from": other, "to": accepted, "nonce": nonce})
    proven, refused, again, deltas = await stranger.ask_json(
        accepted,
        first,
        (BROKER_PROOF, {"proof": nonce}),
        (BROKER_PROOF, {"proof": nonce}),
        (METADATA_DELTAS, {"broker": other}),
    )
    assert proven.keys() == {"nonce", "proof"}
    assert refused == again == deltas == {"error": REFUSED.name}
    # Its own proof, sent back to it, is that of the other role.
    mirrored = await stranger.ask_json(
        accepted, first, (BROKER_PROOF, {"proof": proven["proof"]}), (JOURNEY_GROUPS, {})
    )
    assert mirrored[1] == mirrored[2] == {"error": REFUSED.name}


def test_the_cluster_goes_on(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    errors: list[Any] = []
    producer.produce(TOPIC, b"a", on_delivery=lambda error, message: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]
    cluster.wait_in_sync(TOPIC)
