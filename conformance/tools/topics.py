"""Tests of topics, settings, folders, offsets and leaders with Apache Kafka's admin commands."""

import json
import re

from conformance.tools.base import Tools, contains, equal


def topic_create_describe_alter_delete(tools: Tools) -> None:
    name = tools.topic(partitions=3, settings=("retention.ms=3600000", "cleanup.policy=compact"))
    said = tools.run("TopicCommand", "--describe", "--topic", name)
    contains(said, "PartitionCount: 3", "cleanup.policy=compact", "retention.ms=3600000")
    contains(said, f"ReplicationFactor: {tools.replicas}", "Partition: 2")
    tools.run("TopicCommand", "--alter", "--topic", name, "--partitions", "5")
    contains(tools.run("TopicCommand", "--describe", "--topic", name), "PartitionCount: 5")
    contains(tools.run("TopicCommand", "--list"), name)
    tools.run("TopicCommand", "--delete", "--topic", name)
    assert name not in tools.run("TopicCommand", "--list")


def topic_faults_are_told(tools: Tools) -> None:
    name = tools.topic()
    contains(tools.refused("TopicCommand", "--create", "--topic", name), "already exists")
    said = tools.refused("TopicCommand", "--create", "--topic", f"{name}-2", "--config", "nope=1")
    contains(said, "nope")
    many = ("--create", "--topic", f"{name}-3", "--replication-factor", "9")
    contains(tools.refused("TopicCommand", *many), "replication factor")
    fewer = tools.topic(partitions=2)
    said = tools.refused("TopicCommand", "--alter", "--topic", fewer, "--partitions", "1")
    contains(said, "not be an increase")


def topic_settings(tools: Tools) -> None:
    name = tools.topic()
    entity = ("--entity-type", "topics", "--entity-name", name)
    command = "ConfigCommand"
    changes = "retention.ms=60000,cleanup.policy=[compact,delete]"
    contains(tools.run(command, *entity, "--alter", "--add-config", changes), "Completed updating")
    said = tools.run(command, *entity, "--describe")
    contains(said, "retention.ms=60000", "cleanup.policy=compact,delete", "DYNAMIC_TOPIC_CONFIG")
    tools.run(command, *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=60000" not in tools.run(command, *entity, "--describe")
    contains(tools.run(command, *entity, "--describe", "--all"), "retention.ms=604800000")
    said = tools.refused(command, *entity, "--alter", "--add-config", "retention.ms=soon")
    contains(said, "retention.ms")


def broker_settings(tools: Tools) -> None:
    said = tools.run("BrokerApiVersionsCommand")
    found = re.search(r"\(id: (\d+)", said)
    assert found, said
    entity = ("--entity-type", "brokers", "--entity-name", found[1])
    said = tools.run("ConfigCommand", *entity, "--describe", "--all")
    contains(said, "num.partitions=", "log.retention.hours=168", "DEFAULT_CONFIG")


def group_settings(tools: Tools) -> None:
    entity = ("--entity-type", "groups", "--entity-name", tools.topic())
    command = "ConfigCommand"
    changes = "consumer.session.timeout.ms=50000,share.auto.offset.reset=by_duration:PT1H"
    contains(tools.run(command, *entity, "--alter", "--add-config", changes), "Completed updating")
    said = tools.run(command, *entity, "--describe")
    contains(said, "consumer.session.timeout.ms=50000", "by_duration:PT1H", "DYNAMIC_GROUP_CONFIG")
    tools.run(command, *entity, "--alter", "--delete-config", "consumer.session.timeout.ms")
    assert "consumer.session.timeout.ms" not in tools.run(command, *entity, "--describe")
    wrong = "consumer.heartbeat.interval.ms=1"
    said = tools.refused(command, *entity, "--alter", "--add-config", wrong)
    contains(said, "must be greater than or equal to group.consumer.min.heartbeat.interval.ms")


def log_folders(tools: Tools) -> None:
    name = tools.topic(partitions=2)
    tools.fill(name, 500)
    said = tools.run("LogDirsCommand", "--describe", "--topic-list", name)
    answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    folders = [folder for broker in answer["brokers"] for folder in broker["logDirs"]]
    equal({folder["error"] for folder in folders}, {None})
    copies = [part for folder in folders for part in folder["partitions"]]
    equal(
        sorted(part["partition"] for part in copies),
        sorted([f"{name}-0", f"{name}-1"] * tools.replicas),
    )
    sizes = {(part["partition"], part["size"]) for part in copies}
    equal(len(sizes), 2)
    assert sum(size for _, size in sizes) > 500 * 100
    equal({part["isFuture"] for part in copies}, {False})
    equal({part["offsetLag"] for part in copies}, {0})


def offsets(tools: Tools) -> None:
    name = tools.topic(partitions=2)
    equal(tools.end_offsets(name), {0: 0, 1: 0})
    tools.fill(name, 1000)
    equal(sum(tools.end_offsets(name).values()), 1000)
    equal(tools.end_offsets(name, "-2"), {0: 0, 1: 0})
    for special in ("-3", "-4"):
        assert tools.end_offsets(name, special)


def delete_records(tools: Tools) -> None:
    name = tools.topic()
    tools.fill(name, 1000)
    wanted = [{"topic": name, "partition": 0, "offset": 400}]
    file = tools.write("delete.json", {"partitions": wanted, "version": 1})
    said = tools.run("DeleteRecordsCommand", "--offset-json-file", file)
    contains(said, f"partition: {name}-0", "low_watermark: 400")
    equal(tools.end_offsets(name, "-2"), {0: 400})
    equal(tools.end_offsets(name), {0: 1000})


def leader_election(tools: Tools) -> None:
    name = tools.topic(partitions=2)
    kind = ("--election-type", "preferred")
    said = tools.run("LeaderElectionCommand", *kind, "--topic", name, "--partition", "0")
    contains(said, "Valid replica already elected")
    tools.run("LeaderElectionCommand", *kind, "--all-topic-partitions")


def reassignment_to_the_same_broker(tools: Tools) -> None:
    name = tools.topic()
    said = tools.run("TopicCommand", "--describe", "--topic", name)
    found = re.search(r"Replicas: (\d+)", said)
    assert found, said
    move = {"topic": name, "partition": 0, "replicas": [int(found[1])], "log_dirs": ["any"]}
    file = tools.write("move.json", {"version": 1, "partitions": [move]})
    command = "reassign.ReassignPartitionsCommand"
    contains(tools.run(command, "--reassignment-json-file", file, "--execute"), "started")
    said = tools.run(command, "--reassignment-json-file", file, "--verify")
    contains(said, f"Reassignment of partition {name}-0 is completed")
    contains(tools.run(command, "--list"), "No partition reassignments found")


def cluster_and_versions(tools: Tools) -> None:
    contains(tools.run("ClusterTool", "cluster-id"), "Cluster ID: ")
    said = tools.run("BrokerApiVersionsCommand")
    contains(said, "Produce(0): 0 to ", "Fetch(1): ", "ApiVersions(18): ")


TESTS = (
    topic_create_describe_alter_delete,
    topic_faults_are_told,
    topic_settings,
    broker_settings,
    group_settings,
    log_folders,
    offsets,
    delete_records,
    leader_election,
    reassignment_to_the_same_broker,
    cluster_and_versions,
)
