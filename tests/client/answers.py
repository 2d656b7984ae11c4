"""Answers of a FakeCluster for what commands ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.client.fake_cluster import PORT, Answer

from ottla.client.admin.cluster import DESCRIBE_CLUSTER, DESCRIBE_QUORUM, METADATA_TOPIC
from ottla.client.admin.committed_offsets import OFFSET_COMMIT, OFFSET_FETCH
from ottla.client.admin.configs import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, KINDS, SOURCES
from ottla.client.admin.elections import ELECT_LEADERS
from ottla.client.admin.groups import (
    CONSUMER,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    Group,
)
from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, LogDir
from ottla.client.admin.offsets import EARLIEST, LATEST, LIST_OFFSETS
from ottla.client.admin.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    Reassignment,
)
from ottla.client.admin.records import DELETE_RECORDS
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import (
    CONSUMER_GROUP_DESCRIBE,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)

Partition = tuple[str, int]


def topics_of(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


def moving(under_way: Callable[[], Mapping[Partition, Reassignment]]) -> Answer:
    """The answer to ListPartitionReassignments."""

    def answer(address: str, request: Any) -> Any:
        build, now = messages_of(LIST_PARTITION_REASSIGNMENTS, 0), under_way()
        topics = tuple(
            build.OngoingTopicReassignment(
                name=topic,
                partitions=tuple(
                    build.OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=now[topic, index].replicas,
                        adding_replicas=now[topic, index].adding,
                        removing_replicas=now[topic, index].removing,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in topics_of(now).items()
        )
        return build.ListPartitionReassignmentsResponse(error_message=None, topics=topics)

    return answer


def moved(move: Callable[[str, int, tuple[int, ...] | None], None]) -> Answer:
    """The answer to AlterPartitionReassignments, after each of its moves; None cancels one."""

    def answer(address: str, request: Any) -> Any:
        for topic in request.topics:
            for each in topic.partitions:
                move(topic.name, each.partition_index, each.replicas)
        build = messages_of(ALTER_PARTITION_REASSIGNMENTS, request.__version__)
        return build.AlterPartitionReassignmentsResponse(error_message=None, responses=())

    return answer


def elected(elect: Callable[[bool, Sequence[Partition]], str | None]) -> Answer:
    """The answer to ElectLeaders: of `elect(is_unclean, partitions)`, None or why it failed."""

    def answer(address: str, request: Any) -> Any:
        partitions = [
            (topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
        ]
        reason = elect(bool(request.election_type), partitions)
        code = ErrorCode.none if reason is None else ErrorCode.preferred_leader_not_available
        build = messages_of(ELECT_LEADERS, request.__version__)
        results = tuple(
            build.ReplicaElectionResult(
                topic=topic,
                partition_result=tuple(
                    build.PartitionResult(partition_id=index, error_code=code, error_message=reason)
                    for index in indexes
                ),
            )
            for topic, indexes in topics_of(partitions).items()
        )
        return build.ElectLeadersResponse(
            error_code=ErrorCode.none, replica_election_results=results
        )

    return answer


def stored(folders: Sequence[LogDir]) -> Answer:
    """The answer to DescribeLogDirs: the folders of the broker that is asked."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_LOG_DIRS, request.__version__)
        wanted = None
        if request.topics is not None:
            wanted = {(each.topic, index) for each in request.topics for index in each.partitions}
        results = tuple(
            build.DescribeLogDirsResult(
                error_code=ErrorCode.none if each.error is None else ErrorCode.kafka_storage_error,
                log_dir=each.path,
                total_bytes=-1 if each.total_bytes is None else each.total_bytes,
                usable_bytes=-1 if each.usable_bytes is None else each.usable_bytes,
                topics=tuple(
                    build.DescribeLogDirsTopic(
                        name=replica.topic,
                        partitions=(
                            build.DescribeLogDirsPartition(
                                partition_index=replica.partition,
                                partition_size=replica.size_bytes,
                                offset_lag=replica.offset_lag,
                                is_future_key=replica.is_future,
                            ),
                        ),
                    )
                    for replica in each.replicas
                    if wanted is None or (replica.topic, replica.partition) in wanted
                ),
            )
            for each in folders
            if f"b{each.broker}:{PORT}" == address
        )
        return build.DescribeLogDirsResponse(error_code=ErrorCode.none, results=results)

    return answer


def described(controller: int) -> Answer:
    """The answer to DescribeCluster: cluster x of b1, in rack a, and b2."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_CLUSTER, request.__version__)
        brokers = tuple(
            build.DescribeClusterBroker(broker_id=number, host=f"b{number}", port=PORT, rack=rack)
            for number, rack in ((1, "a"), (2, "b"))
        )
        return build.DescribeClusterResponse(
            error_message=None, cluster_id="x", controller_id=controller, brokers=brokers
        )

    return answer


def epoch(leader_epoch: int) -> Answer:
    """The answer to DescribeQuorum."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_QUORUM, request.__version__)
        partition = build.PartitionData(partition_index=0, leader_id=1, leader_epoch=leader_epoch)
        topic = build.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return build.DescribeQuorumResponse(topics=(topic,))

    return answer


Offsets = Mapping[TopicPartition, int] | Mapping[Partition, int]
SETTINGS = {number: kind for kind, number in KINDS.items()}


def offsets(first: Offsets, end: Offsets, at: Offsets | None = None) -> Answer:
    """The answer to ListOffsets; partitions without an offset are refused."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(LIST_OFFSETS, request.__version__)
        return build.ListOffsetsResponse(
            topics=tuple(
                build.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(one(build, topic.name, each) for each in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def one(build: Any, topic: str, each: Any) -> Any:
        known: Mapping[Any, int] = {EARLIEST: first, LATEST: end}.get(each.timestamp, at or {})
        offset = known.get((topic, each.partition_index))
        return build.ListOffsetsPartitionResponse(
            partition_index=each.partition_index,
            error_code=ErrorCode.kafka_storage_error if offset is None else ErrorCode.none,
            offset=-1 if offset is None else offset,
            leader_epoch=-1,
        )

    return answer


Settings = dict[tuple[str, str], dict[str, str | None]]
"""By kind and name. A value of None is a secret."""


def configs(settings: Settings, source: str | None = None) -> Answer:
    """The answer to DescribeConfigs; `source` is that of the kind itself by default."""
    numbers = {word: number for number, word in SOURCES.items()}

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_CONFIGS, request.__version__)
        return build.DescribeConfigsResponse(
            results=tuple(
                build.DescribeConfigsResult(
                    error_message=None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=tuple(
                        build.DescribeConfigsResourceResult(
                            name=name,
                            value=value,
                            config_source=numbers[source or SETTINGS[each.resource_type]],
                            is_sensitive=value is None,
                        )
                        for name, value in settings.get(
                            (SETTINGS[each.resource_type], each.resource_name), {}
                        ).items()
                    ),
                )
                for each in request.resources
            )
        )

    return answer


def altered(settings: Settings) -> Answer:
    """The answer to IncrementalAlterConfigs, once the settings are changed."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(INCREMENTAL_ALTER_CONFIGS, request.__version__)
        for resource in request.resources:
            own = settings[SETTINGS[resource.resource_type], resource.resource_name]
            for each in resource.configs:
                if each.config_operation:
                    own.pop(each.name, None)
                else:
                    own[each.name] = each.value
        return build.IncrementalAlterConfigsResponse(
            responses=tuple(
                build.AlterConfigsResourceResponse(
                    error_message=None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each in request.resources
            )
        )

    return answer


def deleted_records() -> Answer:
    """The answer to DeleteRecords: done."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DELETE_RECORDS, request.__version__)
        return build.DeleteRecordsResponse(
            topics=tuple(
                build.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        build.DeleteRecordsPartitionResult(
                            partition_index=each.partition_index, low_watermark=each.offset
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


def groups(
    known: Mapping[str, Group], commits: Mapping[str, dict[Partition, int]]
) -> dict[int, Any]:
    """The answers about groups and what they have committed, which commits and deletions change."""
    left = dict(known)

    def listed(address: str, request: Any) -> Any:
        build = messages_of(LIST_GROUPS, request.__version__)
        found = left if address == f"b2:{PORT}" else {}
        return build.ListGroupsResponse(
            groups=tuple(
                build.ListedGroup(
                    group_id=name,
                    protocol_type=CONSUMER,
                    group_state=each.state.capitalize(),
                    group_type="Classic",
                )
                for name, each in found.items()
            )
        )

    def described(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_GROUPS, request.__version__)
        return build.DescribeGroupsResponse(
            groups=tuple(
                build.DescribedGroup(
                    group_id=name,
                    group_state=left[name].state.capitalize(),
                    protocol_type=CONSUMER,
                    protocol_data=left[name].assignor or "",
                    members=tuple(
                        build.DescribedGroupMember(
                            member_id=member.member_id,
                            client_id=member.client_id,
                            client_host=member.host,
                        )
                        for member in left[name].members
                    ),
                )
                if name in left
                else build.DescribedGroup(group_id=name, error_code=ErrorCode.group_id_not_found)
                for name in request.groups
            )
        )

    def of_new_protocol(address: str, request: Any) -> Any:
        """All of these groups are classic ones."""
        build = messages_of(request.__api_key__, request.__version__)
        code = ErrorCode.group_id_not_found
        is_share = request.__api_key__ == SHARE_GROUP_DESCRIBE
        make = build.ShareGroupDescribeResponse if is_share else build.ConsumerGroupDescribeResponse
        return make(
            groups=tuple(
                build.DescribedGroup(
                    error_code=code,
                    error_message=None,
                    group_id=name,
                    group_state="",
                    group_epoch=0,
                    assignment_epoch=0,
                    assignor_name="",
                    members=(),
                )
                for name in request.group_ids
            )
        )

    def of_streams(address: str, request: Any) -> Any:
        """None of these groups is one."""
        build = messages_of(STREAMS_GROUP_DESCRIBE, 1)
        return build.StreamsGroupDescribeResponse(
            groups=tuple(
                build.DescribedGroup(
                    error_code=ErrorCode.group_id_not_found,
                    error_message=None,
                    group_id=name,
                    members=(),
                )
                for name in request.group_ids
            )
        )

    def fetched(address: str, request: Any) -> Any:
        build = messages_of(OFFSET_FETCH, request.__version__)
        at = commits.get(request.group_id, {})
        return build.OffsetFetchResponse(
            topics=tuple(
                build.OffsetFetchResponseTopic(
                    name=topic,
                    partitions=tuple(
                        build.OffsetFetchResponsePartition(
                            partition_index=index, committed_offset=at[topic, index], metadata=""
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in topics_of(at).items()
            )
        )

    def committed(address: str, request: Any) -> Any:
        build = messages_of(OFFSET_COMMIT, request.__version__)
        own = commits[request.group_id]
        for topic in request.topics:
            for each in topic.partitions:
                own[topic.name, each.partition_index] = each.committed_offset
        return build.OffsetCommitResponse(topics=())

    def deleted(address: str, request: Any) -> Any:
        build = messages_of(DELETE_GROUPS, request.__version__)
        for name in request.groups_names:
            del left[name]
        return build.DeleteGroupsResponse(
            results=tuple(
                build.DeletableGroupResult(group_id=name) for name in request.groups_names
            )
        )

    return {
        LIST_GROUPS: [listed],
        DESCRIBE_GROUPS: [described],
        CONSUMER_GROUP_DESCRIBE: [of_new_protocol],
        SHARE_GROUP_DESCRIBE: [of_new_protocol],
        STREAMS_GROUP_DESCRIBE: [of_streams],
        OFFSET_FETCH: [fetched],
        OFFSET_COMMIT: [committed],
        DELETE_GROUPS: [deleted],
    }
