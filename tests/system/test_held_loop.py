"""No request holds a broker's event loop, however much it asks for.

The checking is in `nobody_holds_the_loop`: the broker's own watchdog writes a line. The clients are
answered or disconnected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest
from tests.system.crafted_batches import with_header
from tests.system.wire import Wire

from ottla.protocol.frames import write_request
from ottla.protocol.messages import Messages, messages_of
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import BrokerProcess

MANY: Final = 60_000
RECORDS: Final = 100_000
INDEXES: Final = tuple(range(MANY))
NAMES: Final = tuple(f"name-{index}" for index in INDEXES)

Maker = Callable[[Messages], Any]
LARGE: dict[str, tuple[int, int, Maker]] = {}
"""By what it asks for: the request's key and version, and what makes it."""


def large(name: str, key: int, version: int) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        LARGE[name] = (key, version, make)
        return make

    return add


@large("produce with LogAppendTime", 0, 9)
def _produce_stamped(build: Messages) -> Any:
    batch = with_header(build_batch([Record(0, 1, b"", b"")] * RECORDS), attributes=8)
    return _produce(build, "plain", batch)


@large("produce without keys", 0, 9)
def _produce_without_keys(build: Messages) -> Any:
    return _produce(build, "compacted", build_batch([Record(0, 1, None, b"")] * RECORDS))


@large("produce compressed again", 0, 9)
def _produce_compressed(build: Messages) -> Any:
    values = [bytes((index * step) % 251 for step in range(300)) for index in range(97)]
    records = [Record(0, 1, None, values[index % 97]) for index in range(3_000)]
    return _produce(build, "zstd", build_batch(records))


@large("fetch by name", 1, 12)
def _fetch(build: Messages) -> Any:
    topic = build.FetchTopic(topic="none", partitions=_fetched(build))
    return build.FetchRequest(
        replica_id=-1, max_wait=0, min_bytes=0, topics=(topic,), session_epoch=0, session_id=0
    )


@large("fetch by id", 1, 13)
def _fetch_by_id(build: Messages) -> Any:
    topic = build.FetchTopic(topic_id=UUID(int=5), partitions=_fetched(build))
    return build.FetchRequest(
        replica_id=-1, max_wait=0, min_bytes=0, topics=(topic,), session_epoch=0, session_id=0
    )


@large("list offsets", 2, 7)
def _list_offsets(build: Messages) -> Any:
    partitions = tuple(
        build.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in INDEXES
    )
    topic = build.ListOffsetsTopic(name="plain", partitions=partitions)
    return build.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(topic,))


@large("metadata", 3, 12)
def _metadata(build: Messages) -> Any:
    topics = tuple(build.MetadataRequestTopic(name=name) for name in NAMES)
    return build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


@large("offset commit", 8, 7)
def _offset_commit(build: Messages) -> Any:
    partitions = tuple(
        build.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, committed_metadata=""
        )
        for index in INDEXES
    )
    topic = build.OffsetCommitRequestTopic(name="plain", partitions=partitions)
    return build.OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )


@large("offset fetch", 9, 7)
def _offset_fetch(build: Messages) -> Any:
    topic = build.OffsetFetchRequestTopic(name="plain", partition_indexes=INDEXES)
    return build.OffsetFetchRequest(group_id="g", topics=(topic,))


@large("find coordinator", 10, 4)
def _find_coordinator(build: Messages) -> Any:
    return build.FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES)


@large("join group", 11, 7)
def _join_group(build: Messages) -> Any:
    protocols = tuple(build.JoinGroupRequestProtocol(name=name, metadata=b"") for name in NAMES)
    return build.JoinGroupRequest(
        group_id="g", session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="consumer", protocols=protocols,
    )  # fmt: skip


@large("leave group", 13, 5)
def _leave_group(build: Messages) -> Any:
    members = tuple(build.MemberIdentity(member_id=name) for name in NAMES)
    return build.LeaveGroupRequest(group_id="g", members=members)


@large("sync group", 14, 5)
def _sync_group(build: Messages) -> Any:
    assignments = tuple(
        build.SyncGroupRequestAssignment(member_id=name, assignment=b"") for name in NAMES
    )
    return build.SyncGroupRequest(
        group_id="g", generation_id=1, member_id="x", assignments=assignments
    )


@large("describe groups", 15, 5)
def _describe_groups(build: Messages) -> Any:
    return build.DescribeGroupsRequest(groups=NAMES)


@large("create topics, validate only", 19, 7)
def _create_topics(build: Messages) -> Any:
    topics = tuple(
        build.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in NAMES[:20_000]
    )
    return build.CreateTopicsRequest(topics=topics, timeout=60_000, validate_only=True)


@large("delete topics", 20, 6)
def _delete_topics(build: Messages) -> Any:
    topics = tuple(build.DeleteTopicState(name=name) for name in NAMES)
    return build.DeleteTopicsRequest(topics=topics, timeout=60_000)


@large("delete records", 21, 2)
def _delete_records(build: Messages) -> Any:
    partitions = tuple(
        build.DeleteRecordsPartition(partition_index=index, offset=0) for index in INDEXES
    )
    topic = build.DeleteRecordsTopic(name="plain", partitions=partitions)
    return build.DeleteRecordsRequest(topics=(topic,), timeout=60_000)


@large("offsets for epochs", 23, 4)
def _offsets_for_epochs(build: Messages) -> Any:
    partitions = tuple(
        build.OffsetForLeaderPartition(partition=index, current_leader_epoch=0, leader_epoch=0)
        for index in INDEXES
    )
    topic = build.OffsetForLeaderTopic(topic="plain", partitions=partitions)
    return build.OffsetForLeaderEpochRequest(replica_id=-2, topics=(topic,))


@large("add partitions to a transaction", 24, 3)
def _add_partitions(build: Messages) -> Any:
    topic = build.AddPartitionsToTxnTopic(name="plain", partitions=INDEXES)
    return build.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t", v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0, v3_and_below_topics=(topic,),
    )  # fmt: skip


@large("write markers", 27, 1)
def _write_markers(build: Messages) -> Any:
    topic = build.WritableTxnMarkerTopic(name="plain", partition_indexes=(0,) * MANY)
    marker = build.WritableTxnMarker(
        producer_id=5, producer_epoch=0, transaction_result=True, topics=(topic,),
        coordinator_epoch=0,
    )  # fmt: skip
    return build.WriteTxnMarkersRequest(markers=(marker,))


@large("commit offsets in a transaction", 28, 3)
def _txn_offset_commit(build: Messages) -> Any:
    partitions = tuple(
        build.TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, committed_metadata=""
        )
        for index in INDEXES
    )
    topic = build.TxnOffsetCommitRequestTopic(name="plain", partitions=partitions)
    return build.TxnOffsetCommitRequest(
        transactional_id="t", group_id="g", producer_id=1, producer_epoch=0, topics=(topic,)
    )


@large("describe configs", 32, 4)
def _describe_configs(build: Messages) -> Any:
    resource = build.DescribeConfigsResource(
        resource_type=2, resource_name="plain", configuration_keys=None
    )
    return build.DescribeConfigsRequest(resources=(resource,) * 5_000)


@large("create partitions", 37, 3)
def _create_partitions(build: Messages) -> Any:
    topics = tuple(build.CreatePartitionsTopic(name=name, count=3) for name in NAMES)
    return build.CreatePartitionsRequest(topics=topics, timeout=60_000, validate_only=True)


@large("elect leaders", 43, 2)
def _elect_leaders(build: Messages) -> Any:
    topic = build.TopicPartitions(topic="plain", partitions=INDEXES)
    return build.ElectLeadersRequest(election_type=0, topic_partitions=(topic,), timeout=60_000)


@large("alter configs", 44, 1)
def _alter_configs(build: Messages) -> Any:
    config = build.AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resources = tuple(
        build.AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
        for name in NAMES[:30_000]
    )
    return build.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


@large("reassign partitions", 45, 0)
def _reassign(build: Messages) -> Any:
    partitions = tuple(
        build.ReassignablePartition(partition_index=index, replicas=(1,)) for index in INDEXES
    )
    topic = build.ReassignableTopic(name="plain", partitions=partitions)
    return build.AlterPartitionReassignmentsRequest(timeout=60_000, topics=(topic,))


@large("delete offsets", 47, 0)
def _delete_offsets(build: Messages) -> Any:
    partitions = tuple(
        build.OffsetDeleteRequestPartition(partition_index=index) for index in INDEXES
    )
    topic = build.OffsetDeleteRequestTopic(name="plain", partitions=partitions)
    return build.OffsetDeleteRequest(group_id="g", topics=(topic,))


@large("describe producers", 61, 0)
def _describe_producers(build: Messages) -> Any:
    topic = build.TopicRequest(name="plain", partition_indexes=(0,) * MANY)
    return build.DescribeProducersRequest(topics=(topic,))


@large("describe transactions", 65, 0)
def _describe_transactions(build: Messages) -> Any:
    return build.DescribeTransactionsRequest(transactional_ids=NAMES)


def _produce(build: Messages, topic: str, batch: bytes) -> Any:
    partition = build.PartitionProduceData(index=0, records=batch)
    data = build.TopicProduceData(name=topic, partition_data=(partition,))
    return build.ProduceRequest(acks=-1, timeout=60_000, topic_data=(data,))


def _fetched(build: Messages) -> tuple[Any, ...]:
    return tuple(
        build.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        for index in INDEXES
    )


@pytest.fixture(scope="module")
def topics(broker: BrokerProcess) -> str:
    """The broker's address; it has the topics that the requests name."""
    build = messages_of(19, 7, "request")

    def topic(name: str, **configs: str) -> Any:
        settings = tuple(
            build.CreatableTopicConfig(name=each.replace("_", "."), value=value)
            for each, value in configs.items()
        )
        return build.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, configs=settings
        )

    wanted = (
        topic("plain"),
        topic("compacted", cleanup_policy="compact"),
        topic("zstd", compression_type="zstd", compression_zstd_level="22"),
    )
    with Wire(broker.bootstrap) as wire:
        answer = wire.ask(build.CreateTopicsRequest(topics=wanted, timeout=60_000))
    assert [each.error_code for each in answer.topics] == [0, 0, 0]
    return broker.bootstrap


@pytest.mark.parametrize("name", LARGE)
def test_a_large_request_holds_nobody(topics: str, name: str) -> None:
    key, version, make = LARGE[name]
    data = write_request(make(messages_of(key, version, "request")), 7, "large")
    with Wire(topics) as wire:
        wire.send(data)
        assert wire.frame()
    # The next client is answered, too: the watchdog's line is written by then.
    build = messages_of(18, 3, "request")
    with Wire(topics) as wire:
        wire.ask(build.ApiVersionsRequest(client_software_name="t", client_software_version="1"))


def test_nesting_in_json_holds_nobody(topics: str) -> None:
    """The journey request's body is JSON."""
    header = (20_000).to_bytes(2, "big") + bytes(6) + b"\xff\xff"
    body = b'{"a":[' + b"[]," * 300_000 + b"1]}"
    with Wire(topics) as wire:
        wire.send((len(header) + len(body)).to_bytes(4, "big") + header + body)
        assert b"bad_request" in wire.frame()
