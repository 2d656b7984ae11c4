"""Topics as any broker knows them, from brokers that answer and that do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.cli.topic.metadata import (
    Epoch,
    Partition,
    ReplicaBroker,
    Topic,
    controller_is_away,
    epochs_in,
    metadata_of,
    topics_in,
)
from ottla.client.errors import RefusedError
from ottla.client.metadata import METADATA, Metadata
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def cluster(controller: int = 1, leader: int = 1, code: ErrorCode = ErrorCode.none) -> FakeCluster:
    build = messages_of(METADATA, 12)
    partitions = tuple(
        build.MetadataResponsePartition(
            partition_index=index,
            leader_id=leader,
            leader_epoch=4 + index,
            replica_nodes=(1, 2),
            isr_nodes=(1,),
            offline_replicas=(2,),
        )
        for index in (1, 0)
    )
    topic = build.MetadataResponseTopic(
        name="t", topic_id=UUID(bytes=b"\xfb" * 16), error_code=code, partitions=partitions
    )
    broker = build.MetadataResponseBroker(node_id=1, host="b1", port=9092, rack="east")
    response = build.MetadataResponse(brokers=(broker,), controller_id=controller, topics=(topic,))
    return FakeCluster({METADATA: [lambda *_: response]})


def connected(brokers: FakeCluster) -> Any:
    return SimpleNamespace(client=brokers.client())


def metadata(**options: Any) -> Metadata:
    found = metadata_of(connected(cluster(**options)), ["t"])
    assert found is not None
    return found


def test_epochs_and_offline_replicas_are_read() -> None:
    assert epochs_in(metadata()) == {("t", 0): Epoch(4, (2,)), ("t", 1): Epoch(5, (2,))}


def test_without_a_response_there_is_no_metadata() -> None:
    brokers = FakeCluster({METADATA: [closing]})
    assert metadata_of(connected(brokers), ["t"]) is None
    assert epochs_in(None) == {}


def test_topics_are_described_as_librdkafka_describes_them() -> None:
    east, unknown = ReplicaBroker(1, "east"), ReplicaBroker(2, None)
    (topic,) = topics_in(metadata(), ["t"])
    assert topic == Topic(
        "t",
        "+/v7+/v7+/v7+/v7+/v7+w",
        False,
        [Partition(index, east, [east, unknown], [east]) for index in (0, 1)],
    )
    (leaderless,) = topics_in(metadata(leader=-1), ["t"])
    assert [each.leader for each in leaderless.partitions] == [None, None]


def test_an_unknown_topic_is_reported() -> None:
    unknown = metadata(code=ErrorCode.unknown_topic_or_partition)
    with pytest.raises(RefusedError, match="cannot describe topic 't': unknown topic or partition"):
        topics_in(unknown, ["t"])


@pytest.mark.parametrize(
    ("controller", "answers", "away"),
    [(1, True, False), (1, False, True), (2, True, True), (-1, True, True)],
)
def test_the_controller_is_tried(controller: int, answers: bool, away: bool) -> None:
    brokers = cluster(controller)
    connection = connected(brokers)
    found = metadata_of(connection, ["t"])
    assert found is not None
    if not answers:
        brokers.silent.add("b1:9092")
    assert controller_is_away(connection, found) is away
