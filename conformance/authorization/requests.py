"""Each advertised request, about the resources of one situation: what is compared.

They are sent in an order in which none takes from a later one what
it asks for. Those that create or delete something do so really.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from conformance.authorization.given import Build, Given, Kind
from conformance.authorization.share_requests import SHARE_KINDS
from conformance.authorization.streams_requests import STREAMS_KINDS
from ottla.protocol.messages import Messages, messages_of
from ottla.protocol.versions import APIS, REFUSED_BELOW
from ottla.records.build import build_batch
from ottla.records.record import Record

TIMEOUT_MS: Final = 10_000
SESSION_MS: Final = 300_000
MAX_BYTES: Final = 1 << 16
NOBODY: Final = -1
LATEST: Final = -1
TOPIC, BROKER, GROUP_CONFIG = 2, 4, 32
"""Types of resources with settings."""
NODE: Final = "1"
"""The id of the only broker."""
FOLLOWER: Final = 2
"""A broker that there is not."""
UNKNOWN_PRODUCER: Final = 4711


class Asked(NamedTuple):
    """A request in one version; `label` names it in both."""

    label: str
    request: Any


def produce(build: Messages, given: Given, transaction: str | None = None) -> Any:
    now_ms = int(time.time() * 1000)
    records = [Record(0, now_ms, None, b"a")]
    if transaction is None:
        batch = build_batch(records)
    else:
        batch = build_batch(
            records,
            producer_id=UNKNOWN_PRODUCER,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    data = build.PartitionProduceData(index=0, records=batch)
    topic = build.TopicProduceData(
        name=given.name("t"), topic_id=given.topic_id("t"), partition_data=(data,)
    )
    return build.ProduceRequest(
        transactional_id=transaction, acks=-1, timeout=TIMEOUT_MS, topic_data=(topic,)
    )


def produce_in_transaction(build: Messages, given: Given) -> Any:
    return produce(build, given, given.name("x"))


def fetch(build: Messages, given: Given, replica_id: int = NOBODY) -> Any:
    partition = build.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MAX_BYTES)
    topic = build.FetchTopic(
        topic=given.name("t"), topic_id=given.topic_id("t"), partitions=(partition,)
    )
    state = build.ReplicaState(replica_id=replica_id, replica_epoch=-1)
    return build.FetchRequest(
        replica_id=replica_id,
        replica_state=state,
        max_wait=0,
        max_bytes=MAX_BYTES,
        session_epoch=-1,
        topics=(topic,),
    )


def fetch_as_follower(build: Messages, given: Given) -> Any:
    return fetch(build, given, FOLLOWER)


def list_offsets(build: Messages, given: Given, replica_id: int = NOBODY) -> Any:
    partition = build.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topic = build.ListOffsetsTopic(name=given.name("t"), partitions=(partition,))
    return build.ListOffsetsRequest(replica_id=replica_id, topics=(topic,))


def list_offsets_as_follower(build: Messages, given: Given) -> Any:
    return list_offsets(build, given, FOLLOWER)


def _metadata(build: Messages, topics: Any, *, creates: bool = False) -> Any:
    return build.MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=creates,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )


def metadata(build: Messages, given: Given) -> Any:
    return _metadata(build, (build.MetadataRequestTopic(name=given.name("t")),))


def metadata_of_all(build: Messages, given: Given) -> Any:
    return _metadata(build, () if build.version == 0 else None)


def metadata_that_creates(build: Messages, given: Given) -> Any:
    return _metadata(build, (build.MetadataRequestTopic(name=given.name("auto")),), creates=True)


def metadata_by_id(build: Messages, given: Given) -> Any:
    topic = build.MetadataRequestTopic(name=None, topic_id=given.topic_id("t"))
    return _metadata(build, (topic,))


def offset_commit(build: Messages, given: Given) -> Any:
    partition = build.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = build.OffsetCommitRequestTopic(
        name=given.name("t"), topic_id=given.topic_id("t"), partitions=(partition,)
    )
    return build.OffsetCommitRequest(
        group_id=given.name("g"), generation_id_or_member_epoch=-1, topics=(topic,)
    )


def offset_fetch(build: Messages, given: Given) -> Any:
    name, topic_id = given.name("t"), given.topic_id("t")
    one = build.OffsetFetchRequestTopic(name=name, partition_indexes=(0,))
    of_many = build.OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=(0,))
    group = build.OffsetFetchRequestGroup(
        group_id=given.name("g"), member_epoch=-1, topics=(of_many,)
    )
    return build.OffsetFetchRequest(group_id=given.name("g"), topics=(one,), groups=(group,))


def offset_fetch_of_all(build: Messages, given: Given) -> Any:
    group = build.OffsetFetchRequestGroup(group_id=given.name("g"), member_epoch=-1, topics=None)
    topics = None if build.version >= 2 else ()
    return build.OffsetFetchRequest(group_id=given.name("g"), topics=topics, groups=(group,))


def _coordinator(build: Messages, name: str, kind: int) -> Any:
    return build.FindCoordinatorRequest(key=name, key_type=kind, coordinator_keys=(name,))


def find_group(build: Messages, given: Given) -> Any:
    return _coordinator(build, given.name("g"), 0)


def find_transaction(build: Messages, given: Given) -> Any:
    return _coordinator(build, given.name("x"), 1)


def join_group(build: Messages, given: Given) -> Any:
    protocol = build.JoinGroupRequestProtocol(name="range", metadata=b"")
    return build.JoinGroupRequest(
        group_id=given.name(f"classic{build.version}"),
        session_timeout=SESSION_MS,
        rebalance_timeout=SESSION_MS,
        protocol_type="consumer",
        protocols=(protocol,),
    )


def heartbeat(build: Messages, given: Given) -> Any:
    return build.HeartbeatRequest(
        group_id=given.name("classic0"), generation_id=1, member_id="nobody"
    )


def leave_group(build: Messages, given: Given) -> Any:
    member = build.MemberIdentity(member_id="nobody")
    return build.LeaveGroupRequest(
        group_id=given.name("classic0"), member_id="nobody", members=(member,)
    )


def sync_group(build: Messages, given: Given) -> Any:
    return build.SyncGroupRequest(
        group_id=given.name("classic0"),
        generation_id=1,
        member_id="nobody",
        protocol_type="consumer",
        protocol_name="range",
    )


def describe_groups(build: Messages, given: Given) -> Any:
    return build.DescribeGroupsRequest(
        groups=(given.name("g"),), include_authorized_operations=True
    )


def list_groups(build: Messages, given: Given) -> Any:
    return build.ListGroupsRequest()


def sasl_handshake(build: Messages, given: Given) -> Any:
    return build.SaslHandshakeRequest(mechanism="PLAIN")


def api_versions(build: Messages, given: Given) -> Any:
    return build.ApiVersionsRequest(
        client_software_name="differential", client_software_version="1"
    )


def create_topics(build: Messages, given: Given) -> Any:
    topic = build.CreatableTopic(
        name=given.name("new"), num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    return build.CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT_MS)


def delete_topics(build: Messages, given: Given) -> Any:
    name = given.name("gone")
    return build.DeleteTopicsRequest(
        topic_names=(name,), topics=(build.DeleteTopicState(name=name),), timeout=TIMEOUT_MS
    )


def delete_topics_by_id(build: Messages, given: Given) -> Any:
    topic = build.DeleteTopicState(name=None, topic_id=given.topic_id("t"))
    return build.DeleteTopicsRequest(topics=(topic,), timeout=TIMEOUT_MS)


def delete_records(build: Messages, given: Given) -> Any:
    partition = build.DeleteRecordsPartition(partition_index=0, offset=0)
    topic = build.DeleteRecordsTopic(name=given.name("t"), partitions=(partition,))
    return build.DeleteRecordsRequest(topics=(topic,), timeout=TIMEOUT_MS)


def _init(build: Messages, transaction: str | None) -> Any:
    return build.InitProducerIdRequest(
        transactional_id=transaction,
        transaction_timeout=TIMEOUT_MS,
        producer_id=NOBODY,
        producer_epoch=NOBODY,
    )


def init_idempotent(build: Messages, given: Given) -> Any:
    return _init(build, None)


def init_transactional(build: Messages, given: Given) -> Any:
    return _init(build, given.name("x"))


def offset_for_leader_epoch(build: Messages, given: Given) -> Any:
    partition = build.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topic = build.OffsetForLeaderTopic(topic=given.name("t"), partitions=(partition,))
    return build.OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))


def add_partitions(build: Messages, given: Given) -> Any:
    topic = build.AddPartitionsToTxnTopic(name=given.name("t"), partitions=(0,))
    transaction = build.AddPartitionsToTxnTransaction(
        transactional_id=given.name("x"), producer_id=UNKNOWN_PRODUCER, topics=(topic,)
    )
    return build.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=given.name("x"),
        v3_and_below_producer_id=UNKNOWN_PRODUCER,
        v3_and_below_topics=(topic,),
        transactions=(transaction,),
    )


def add_offsets(build: Messages, given: Given) -> Any:
    return build.AddOffsetsToTxnRequest(
        transactional_id=given.name("x"), producer_id=UNKNOWN_PRODUCER, group_id=given.name("g")
    )


def end_txn(build: Messages, given: Given) -> Any:
    return build.EndTxnRequest(transactional_id=given.name("x"), producer_id=UNKNOWN_PRODUCER)


def write_abort_marker(build: Messages, given: Given, *, is_commit: bool = False) -> Any:
    topic = build.WritableTxnMarkerTopic(name=given.name("t"), partition_indexes=(0,))
    marker = build.WritableTxnMarker(
        producer_id=UNKNOWN_PRODUCER, transaction_result=is_commit, topics=(topic,)
    )
    return build.WriteTxnMarkersRequest(markers=(marker,))


def write_commit_marker(build: Messages, given: Given) -> Any:
    return write_abort_marker(build, given, is_commit=True)


def txn_offset_commit(build: Messages, given: Given) -> Any:
    partition = build.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = build.TxnOffsetCommitRequestTopic(
        name=given.name("t"), topic_id=given.topic_id("t"), partitions=(partition,)
    )
    return build.TxnOffsetCommitRequest(
        transactional_id=given.name("x"),
        group_id=given.name("g"),
        producer_id=UNKNOWN_PRODUCER,
        generation_id=-1,
        generation_id_or_member_epoch=-1,
        topics=(topic,),
    )


def _acl_filter(given: Given) -> dict[str, Any]:
    """That of an ACL which nobody makes but these requests."""
    return {
        "resource_type_filter": 2,
        "resource_name_filter": given.name("listed"),
        "pattern_type_filter": 3,
        "principal_filter": "User:nobody",
        "host_filter": "*",
        "operation": 3,
        "permission_type": 3,
    }


def describe_acls(build: Messages, given: Given) -> Any:
    return build.DescribeAclsRequest(**_acl_filter(given))


def create_acls(build: Messages, given: Given) -> Any:
    acl = build.AclCreation(
        resource_type=2,
        resource_name=given.name("listed"),
        resource_pattern_type=3,
        principal="User:nobody",
        host="*",
        operation=3,
        permission_type=3,
    )
    return build.CreateAclsRequest(creations=(acl,))


def delete_acls(build: Messages, given: Given) -> Any:
    return build.DeleteAclsRequest(filters=(build.DeleteAclsFilter(**_acl_filter(given)),))


def _described(kind: int, name: str, key: str) -> Build:
    def of(build: Messages, given: Given) -> Any:
        resource = build.DescribeConfigsResource(
            resource_type=kind, resource_name=name or given.name("t"), configuration_keys=(key,)
        )
        return build.DescribeConfigsRequest(resources=(resource,))

    return of


def _altered(message: str, kind: int, name: str, key: str, value: str) -> Build:
    def of(build: Messages, given: Given) -> Any:
        resource = build.AlterConfigsResource(
            resource_type=kind,
            resource_name=name or given.name("t"),
            configs=(build.AlterableConfig(name=key, value=value),),
        )
        make = getattr(build, message)
        return make(resources=(resource,), validate_only=True)

    return of


def alter_replica_log_dirs(build: Messages, given: Given) -> Any:
    topic = build.AlterReplicaLogDirTopic(name=given.name("t"), partitions=(0,))
    folder = build.AlterReplicaLogDir(path="/not/a/folder/of/this/broker", topics=(topic,))
    return build.AlterReplicaLogDirsRequest(dirs=(folder,))


def describe_log_dirs(build: Messages, given: Given) -> Any:
    topic = build.DescribableLogDirTopic(topic=given.name("t"), partitions=(0,))
    return build.DescribeLogDirsRequest(topics=(topic,))


def sasl_authenticate(build: Messages, given: Given) -> Any:
    return build.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice")


def create_partitions(build: Messages, given: Given) -> Any:
    topic = build.CreatePartitionsTopic(name=given.name("t"), count=2, assignments=None)
    return build.CreatePartitionsRequest(topics=(topic,), timeout=TIMEOUT_MS, validate_only=True)


def delete_groups(build: Messages, given: Given) -> Any:
    return build.DeleteGroupsRequest(groups_names=(given.name("g"),))


def elect_leaders(build: Messages, given: Given) -> Any:
    topic = build.TopicPartitions(topic=given.name("t"), partitions=(0,))
    return build.ElectLeadersRequest(topic_partitions=(topic,), timeout=TIMEOUT_MS)


def alter_reassignments(build: Messages, given: Given) -> Any:
    partition = build.ReassignablePartition(partition_index=0, replicas=None)
    topic = build.ReassignableTopic(name=given.name("t"), partitions=(partition,))
    return build.AlterPartitionReassignmentsRequest(timeout=TIMEOUT_MS, topics=(topic,))


def list_reassignments(build: Messages, given: Given) -> Any:
    topic = build.ListPartitionReassignmentsTopics(name=given.name("t"), partition_indexes=(0,))
    return build.ListPartitionReassignmentsRequest(timeout=TIMEOUT_MS, topics=(topic,))


def offset_delete(build: Messages, given: Given) -> Any:
    partition = build.OffsetDeleteRequestPartition(partition_index=0)
    topic = build.OffsetDeleteRequestTopic(name=given.name("t"), partitions=(partition,))
    return build.OffsetDeleteRequest(group_id=given.name("g"), topics=(topic,))


def describe_quotas(build: Messages, given: Given) -> Any:
    part = build.ComponentData(entity_type="user", match_type=0, match=given.name("user"))
    return build.DescribeClientQuotasRequest(components=(part,))


def alter_quotas(build: Messages, given: Given) -> Any:
    entity = build.EntityData(entity_type="user", entity_name=given.name("user"))
    change = build.OpData(key="producer_byte_rate", value=1e6)
    entry = build.EntryData(entity=(entity,), ops=(change,))
    return build.AlterClientQuotasRequest(entries=(entry,), validate_only=True)


def describe_passwords(build: Messages, given: Given) -> Any:
    user = build.UserName(name=given.name("user"))
    return build.DescribeUserScramCredentialsRequest(users=(user,))


def alter_passwords(build: Messages, given: Given) -> Any:
    deletion = build.ScramCredentialDeletion(name=given.name("user"), mechanism=1)
    return build.AlterUserScramCredentialsRequest(deletions=(deletion,))


def describe_quorum(build: Messages, given: Given) -> Any:
    topic = build.TopicData(
        topic_name="__cluster_metadata", partitions=(build.PartitionData(partition_index=0),)
    )
    return build.DescribeQuorumRequest(topics=(topic,))


def update_features(build: Messages, given: Given) -> Any:
    update = build.FeatureUpdateKey(
        feature="transaction.version", max_version_level=2, upgrade_type=1
    )
    return build.UpdateFeaturesRequest(
        timeout=TIMEOUT_MS, feature_updates=(update,), validate_only=True
    )


def describe_cluster(build: Messages, given: Given) -> Any:
    return build.DescribeClusterRequest(include_cluster_authorized_operations=True)


def describe_producers(build: Messages, given: Given) -> Any:
    topic = build.TopicRequest(name=given.name("t"), partition_indexes=(0,))
    return build.DescribeProducersRequest(topics=(topic,))


def describe_transactions(build: Messages, given: Given) -> Any:
    return build.DescribeTransactionsRequest(transactional_ids=(given.name("x"),))


def list_transactions(build: Messages, given: Given) -> Any:
    return build.ListTransactionsRequest()


def consumer_heartbeat(build: Messages, given: Given) -> Any:
    return build.ConsumerGroupHeartbeatRequest(
        group_id=given.name("consumer"),
        member_id=f"member-{build.version}",
        member_epoch=0,
        rebalance_timeout=SESSION_MS,
        subscribed_topic_names=(given.name("t"),),
        topic_partitions=(),
    )


def consumer_describe(build: Messages, given: Given) -> Any:
    return build.ConsumerGroupDescribeRequest(
        group_ids=(given.name("consumer"),), include_authorized_operations=True
    )


def list_config_resources(build: Messages, given: Given) -> Any:
    return build.ListConfigResourcesRequest()


def describe_partitions(build: Messages, given: Given) -> Any:
    topic = build.TopicRequest(name=given.name("t"))
    return build.DescribeTopicPartitionsRequest(topics=(topic,), response_partition_limit=100)


def describe_partitions_of_all(build: Messages, given: Given) -> Any:
    return build.DescribeTopicPartitionsRequest(response_partition_limit=2000)


KINDS: Final = (
    Kind(18, "", api_versions),
    Kind(17, "", sasl_handshake),
    Kind(36, "", sasl_authenticate),
    Kind(60, "", describe_cluster),
    Kind(3, "of a topic", metadata),
    Kind(3, "of all topics", metadata_of_all),
    Kind(3, "by id", metadata_by_id, since=12),
    Kind(75, "of a topic", describe_partitions),
    Kind(75, "of all topics", describe_partitions_of_all),
    Kind(0, "", produce),
    Kind(0, "in a transaction", produce_in_transaction),
    Kind(1, "", fetch),
    Kind(1, "as a follower", fetch_as_follower),
    Kind(2, "", list_offsets),
    Kind(2, "as a follower", list_offsets_as_follower),
    Kind(23, "", offset_for_leader_epoch),
    Kind(61, "", describe_producers),
    Kind(10, "of a group", find_group),
    Kind(10, "of a transaction", find_transaction),
    Kind(8, "", offset_commit),
    Kind(9, "of a topic", offset_fetch),
    Kind(9, "of all topics", offset_fetch_of_all, since=2),
    Kind(11, "", join_group),
    Kind(12, "", heartbeat),
    Kind(14, "", sync_group),
    Kind(13, "", leave_group),
    Kind(15, "", describe_groups),
    Kind(16, "", list_groups),
    Kind(68, "", consumer_heartbeat),
    Kind(69, "", consumer_describe),
    *SHARE_KINDS,
    *STREAMS_KINDS,
    Kind(22, "idempotent", init_idempotent),
    Kind(22, "of a transaction", init_transactional),
    Kind(24, "", add_partitions),
    Kind(25, "", add_offsets),
    Kind(28, "", txn_offset_commit),
    Kind(26, "", end_txn),
    Kind(27, "of an abort", write_abort_marker),
    Kind(27, "of a commit", write_commit_marker),
    Kind(65, "", describe_transactions),
    Kind(66, "", list_transactions),
    Kind(29, "", describe_acls),
    Kind(30, "", create_acls),
    Kind(31, "", delete_acls),
    Kind(32, "of a topic", _described(TOPIC, "", "retention.ms")),
    Kind(32, "of a broker", _described(BROKER, NODE, "log.retention.ms")),
    Kind(33, "of a topic", _altered("AlterConfigsRequest", TOPIC, "", "retention.ms", "1")),
    Kind(33, "of a broker", _altered("AlterConfigsRequest", BROKER, NODE, "log.retention.ms", "1")),
    Kind(
        44,
        "of a topic",
        _altered("IncrementalAlterConfigsRequest", TOPIC, "", "retention.ms", "1"),
    ),
    Kind(
        44,
        "of a broker",
        _altered("IncrementalAlterConfigsRequest", BROKER, NODE, "log.retention.ms", "1"),
    ),
    Kind(74, "", list_config_resources),
    Kind(34, "", alter_replica_log_dirs),
    Kind(35, "", describe_log_dirs),
    Kind(45, "", alter_reassignments),
    Kind(46, "", list_reassignments),
    Kind(43, "", elect_leaders),
    Kind(48, "", describe_quotas),
    Kind(49, "", alter_quotas),
    Kind(50, "", describe_passwords),
    Kind(51, "", alter_passwords),
    Kind(55, "", describe_quorum),
    Kind(57, "", update_features),
    Kind(37, "", create_partitions),
    Kind(19, "", create_topics),
    Kind(3, "that creates a topic", metadata_that_creates, since=4),
    Kind(21, "", delete_records),
    Kind(47, "", offset_delete),
    Kind(42, "", delete_groups),
    Kind(20, "by name", delete_topics),
    Kind(20, "by id", delete_topics_by_id, since=6),
)
"""In the order in which they are sent."""


def versions_of(kind: Kind, *, every: bool) -> tuple[int, ...]:
    """Every version of it, or the first and the last one."""
    api = APIS[kind.key]
    first = max(api.min_version, REFUSED_BELOW.get(kind.key, 0), kind.since)
    return tuple(range(first, api.max_version + 1)) if every else (first, api.max_version)


def requests_of(given: Given, *, every: bool) -> Iterator[Asked]:
    """Every request, in every version or in its first and its last one."""
    for kind in KINDS:
        for version in dict.fromkeys(versions_of(kind, every=every)):
            build = messages_of(kind.key, version, "request")
            label = f"{APIS[kind.key].name} {version} {kind.detail}".strip()
            yield Asked(label, kind.build(build, given))
