"""The requests of share groups (KIP-932)."""

from __future__ import annotations

from typing import Any, Final

from conformance.authorization.given import Given, Kind
from ottla.protocol.messages import Messages

GROUP: Final = "share"
MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def heartbeat(build: Messages, given: Given) -> Any:
    return build.ShareGroupHeartbeatRequest(
        group_id=given.name(GROUP),
        member_id=MEMBER,
        member_epoch=0,
        subscribed_topic_names=(given.name("t"),),
    )


def describe(build: Messages, given: Given) -> Any:
    return build.ShareGroupDescribeRequest(
        group_ids=(given.name(GROUP),), include_authorized_operations=True
    )


def fetch(build: Messages, given: Given) -> Any:
    partition = build.FetchPartition(partition_index=0)
    topic = build.FetchTopic(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.ShareFetchRequest(
        group_id=given.name(GROUP),
        member_id=MEMBER,
        share_session_epoch=0,
        max_bytes=1 << 16,
        max_records=10,
        batch_size=10,
        topics=(topic,),
    )


def acknowledge(build: Messages, given: Given) -> Any:
    batch = build.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(1,))
    partition = build.AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
    topic = build.AcknowledgeTopic(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.ShareAcknowledgeRequest(
        group_id=given.name(GROUP), member_id=MEMBER, share_session_epoch=1, topics=(topic,)
    )


def initialize_state(build: Messages, given: Given) -> Any:
    partition = build.PartitionData(partition=0, state_epoch=1, start_offset=0)
    topic = build.InitializeStateData(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.InitializeShareGroupStateRequest(group_id=given.name(GROUP), topics=(topic,))


def read_state(build: Messages, given: Given) -> Any:
    partition = build.PartitionData(partition=0, leader_epoch=0)
    topic = build.ReadStateData(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.ReadShareGroupStateRequest(group_id=given.name(GROUP), topics=(topic,))


def write_state(build: Messages, given: Given) -> Any:
    partition = build.PartitionData(partition=0, state_epoch=1, leader_epoch=0, start_offset=0)
    topic = build.WriteStateData(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.WriteShareGroupStateRequest(group_id=given.name(GROUP), topics=(topic,))


def read_summary(build: Messages, given: Given) -> Any:
    partition = build.PartitionData(partition=0, leader_epoch=0)
    topic = build.ReadStateSummaryData(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.ReadShareGroupStateSummaryRequest(group_id=given.name(GROUP), topics=(topic,))


def delete_state(build: Messages, given: Given) -> Any:
    partition = build.PartitionData(partition=0)
    topic = build.DeleteStateData(topic_id=given.topic_id("t"), partitions=(partition,))
    return build.DeleteShareGroupStateRequest(group_id=given.name(GROUP), topics=(topic,))


def describe_offsets(build: Messages, given: Given) -> Any:
    topic = build.DescribeShareGroupOffsetsRequestTopic(topic_name=given.name("t"), partitions=(0,))
    group = build.DescribeShareGroupOffsetsRequestGroup(group_id=given.name(GROUP), topics=(topic,))
    return build.DescribeShareGroupOffsetsRequest(groups=(group,))


def alter_offsets(build: Messages, given: Given) -> Any:
    partition = build.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topic = build.AlterShareGroupOffsetsRequestTopic(
        topic_name=given.name("t"), partitions=(partition,)
    )
    return build.AlterShareGroupOffsetsRequest(group_id=given.name(GROUP), topics=(topic,))


def delete_offsets(build: Messages, given: Given) -> Any:
    topic = build.DeleteShareGroupOffsetsRequestTopic(topic_name=given.name("t"))
    return build.DeleteShareGroupOffsetsRequest(group_id=given.name(GROUP), topics=(topic,))


SHARE_KINDS: Final = (
    Kind(76, "", heartbeat),
    Kind(77, "", describe),
    Kind(78, "", fetch),
    Kind(79, "", acknowledge),
    Kind(83, "", initialize_state),
    Kind(85, "", write_state),
    Kind(84, "", read_state),
    Kind(87, "", read_summary),
    Kind(86, "", delete_state),
    Kind(90, "", describe_offsets),
    Kind(91, "", alter_offsets),
    Kind(92, "", delete_offsets),
)
