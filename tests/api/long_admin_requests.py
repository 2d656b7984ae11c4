"""Requests about many topics, partitions or settings."""

from typing import Any

MANY = 10_000


def delete(cluster: Any) -> Any:
    build = cluster.request(20, 6)
    topics = tuple(build.DeleteTopicState(name=f"none{i}") for i in range(MANY))
    return build.DeleteTopicsRequest(topics=topics, timeout=1000)


def delete_without_time(cluster: Any) -> Any:
    build = cluster.request(20, 5)
    names = tuple(f"none{i}" for i in range(2 * MANY))
    return build.DeleteTopicsRequest(topic_names=names, timeout=0)


def create_twice(cluster: Any) -> Any:
    build = cluster.request(19, 7)
    topics = tuple(
        build.CreatableTopic(name=f"t{i // 2}", num_partitions=1, replication_factor=1)
        for i in range(2 * MANY)
    )
    return build.CreateTopicsRequest(topics=topics, timeout=1000, validate_only=False)


def create_without_time(cluster: Any) -> Any:
    build = cluster.request(19, 7)
    topics = tuple(
        build.CreatableTopic(name=f"t{i}", num_partitions=1, replication_factor=1)
        for i in range(2 * MANY)
    )
    return build.CreateTopicsRequest(topics=topics, timeout=0, validate_only=False)


def add_partitions(cluster: Any) -> Any:
    build = cluster.request(37, 3)
    topics = tuple(build.CreatePartitionsTopic(name=f"none{i}", count=3) for i in range(MANY))
    return build.CreatePartitionsRequest(topics=topics, timeout=1000, validate_only=True)


def reassign(cluster: Any) -> Any:
    build = cluster.request(45, 0)
    partitions = tuple(
        build.ReassignablePartition(partition_index=i, replicas=(1,)) for i in range(2 * MANY)
    )
    topics = (build.ReassignableTopic(name="t", partitions=partitions),)
    return build.AlterPartitionReassignmentsRequest(timeout=1000, topics=topics)


def list_reassignments(cluster: Any) -> Any:
    build = cluster.request(46, 0)
    topics = tuple(
        build.ListPartitionReassignmentsTopics(name=f"none{i}", partition_indexes=())
        for i in range(5 * MANY)
    )
    return build.ListPartitionReassignmentsRequest(timeout=1000, topics=topics)


def elect(cluster: Any) -> Any:
    build = cluster.request(43, 2)
    topics = (build.TopicPartitions(topic="t", partitions=tuple(range(2 * MANY))),)
    return build.ElectLeadersRequest(election_type=0, topic_partitions=topics, timeout=1000)


def alter(cluster: Any) -> Any:
    build = cluster.request(33, 2)
    configs = (build.AlterableConfig(name="retention.ms", value="1000"),)
    resources = tuple(
        build.AlterConfigsResource(resource_type=2, resource_name=f"none{i}", configs=configs)
        for i in range(1000)
    )
    return build.AlterConfigsRequest(resources=resources, validate_only=False)


def alter_incrementally(cluster: Any) -> Any:
    build = cluster.request(44, 1)
    configs = (build.AlterableConfig(name="retention.ms", config_operation=0, value="1000"),)
    resources = tuple(
        build.AlterConfigsResource(resource_type=2, resource_name=f"none{i}", configs=configs)
        for i in range(1000)
    )
    return build.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


def alter_one_topic(cluster: Any) -> Any:
    build = cluster.request(44, 1)
    configs = tuple(
        build.AlterableConfig(name=f"c{i}", config_operation=0, value="1") for i in range(MANY)
    )
    resource = build.AlterConfigsResource(resource_type=2, resource_name="t", configs=configs)
    return build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def describe_log_dirs(cluster: Any) -> Any:
    build = cluster.request(35, 4)
    topics = (build.DescribableLogDirTopic(topic="t", partitions=(0,) * 5 * MANY),)
    return build.DescribeLogDirsRequest(topics=topics)


def move_replicas(cluster: Any) -> Any:
    build = cluster.request(34, 2)
    topics = (build.AlterReplicaLogDirTopic(name="t", partitions=tuple(range(2 * MANY))),)
    dirs = (build.AlterReplicaLogDir(path="/elsewhere", topics=topics),)
    return build.AlterReplicaLogDirsRequest(dirs=dirs)


def update_features(cluster: Any) -> Any:
    build = cluster.request(57, 1)
    updates = tuple(
        build.FeatureUpdateKey(feature=f"f{i}", max_version_level=1, upgrade_type=1)
        for i in range(2 * MANY)
    )
    return build.UpdateFeaturesRequest(feature_updates=updates, timeout=1000)


def create_by_metadata(cluster: Any) -> Any:
    """Names that no topic can have: what is before and after the creation is the same."""
    build = cluster.request(3, 12)
    topics = tuple(build.MetadataRequestTopic(name=f"no topic {i}") for i in range(2 * MANY))
    return build.MetadataRequest(topics=topics, allow_auto_topic_creation=True)


REQUESTS = (
    create_by_metadata,
    delete,
    delete_without_time,
    create_twice,
    create_without_time,
    add_partitions,
    reassign,
    list_reassignments,
    elect,
    alter,
    alter_incrementally,
    alter_one_topic,
    describe_log_dirs,
    move_replicas,
    update_features,
)
