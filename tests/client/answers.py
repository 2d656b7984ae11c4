"""Answers of a FakeCluster for what commands ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.client.fake_cluster import PORT, Answer

from ottla.client.admin.cluster import DESCRIBE_CLUSTER, DESCRIBE_QUORUM, METADATA_TOPIC
from ottla.client.admin.elections import ELECT_LEADERS
from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, LogDir
from ottla.client.admin.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    Reassignment,
)
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

Place = tuple[str, int]


def topics_of(places: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in places:
        found.setdefault(topic, []).append(index)
    return found


def moving(under_way: Callable[[], Mapping[Place, Reassignment]]) -> Answer:
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


def elected(elect: Callable[[bool, Sequence[Place]], str | None]) -> Answer:
    """The answer to ElectLeaders: of `elect(is_unclean, partitions)`, None or why it failed."""

    def answer(address: str, request: Any) -> Any:
        places = [
            (topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
        ]
        reason = elect(bool(request.election_type), places)
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
            for topic, indexes in topics_of(places).items()
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
