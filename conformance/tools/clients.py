"""Tests of the Java producer, consumer and groups with Apache Kafka's own tools."""

import json
import uuid
from typing import Any

from conformance.tools.base import Tools, contains, equal

COUNT = 5000
SHARED = 1000
GROUPS = "consumer.group.ConsumerGroupCommand"


def events(said: str) -> list[dict[str, Any]]:
    """The JSON lines that the verifiable clients print."""
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def produced(tools: Tools, topic: str, count: int, *more: str) -> list[dict[str, Any]]:
    """The records that VerifiableProducer has written."""
    arguments = ("--topic", topic, "--max-messages", str(count), "--acks", "-1", *more)
    said = events(tools.run("VerifiableProducer", *arguments))
    failed = [event for event in said if event["name"] == "producer_send_error"]
    assert not failed, failed[:3]
    return [event for event in said if event["name"] == "producer_send_success"]


def consumed(tools: Tools, topic: str, group: str, count: int, *more: str) -> list[dict[str, Any]]:
    """What VerifiableConsumer says of `count` records, from the first one on."""
    arguments = ("--topic", topic, "--group-id", group, "--max-messages", str(count), "--verbose")
    return events(tools.run("VerifiableConsumer", *arguments, "--reset-policy", "earliest", *more))


def _read_group(tools: Tools, count: int = 300) -> tuple[str, str]:
    """A topic with `count` records, and a group that has read it and left."""
    topic = tools.topic(partitions=2)
    group = f"group-{uuid.uuid4().hex[:8]}"
    tools.fill(topic, count)
    consumed(tools, topic, group, count)
    return topic, group


def verifiable_producer_and_consumer(tools: Tools) -> None:
    topic = tools.topic(partitions=3)
    sent = produced(tools, topic, COUNT)
    equal(len(sent), COUNT)
    said = consumed(tools, topic, f"group-{topic}", COUNT)
    got = [event for event in said if event["name"] == "record_data"]
    wanted = sorted((event["partition"], event["offset"], event["value"]) for event in sent)
    equal(sorted((event["partition"], event["offset"], event["value"]) for event in got), wanted)
    commits = [event for event in said if event["name"] == "offsets_committed"]
    equal({event["success"] for event in commits}, {True})


def verifiable_share_consumer(tools: Tools) -> None:
    topic = tools.topic(partitions=3)
    sent = produced(tools, topic, SHARED)
    wanted = sorted((event["partition"], event["offset"], event["value"]) for event in sent)
    for mode in ("auto", "sync", "async"):
        said = events(
            tools.run(
                "VerifiableShareConsumer",
                *("--topic", topic, "--group-id", f"{mode}-{topic}", "--verbose"),
                *("--max-messages", str(SHARED), "--acknowledgement-mode", mode),
                *("--offset-reset-strategy", "earliest"),
            )
        )
        got = [event for event in said if event["name"] == "record_data"]
        equal(
            sorted((event["partition"], event["offset"], event["value"]) for event in got), wanted
        )
        acknowledged = [event for event in said if event["name"] == "offsets_acknowledged"]
        equal({event["success"] for event in acknowledged}, {True})
        equal(sum(event["count"] for event in acknowledged), SHARED)


def every_compression(tools: Tools) -> None:
    topic = tools.topic()
    for kind in ("none", "gzip", "snappy", "lz4", "zstd"):
        tools.fill(topic, 2000, f"compression.type={kind}")
    equal(tools.end_offsets(topic), {0: 10_000})
    said = tools.run("ConsumerPerformance", "--topic", topic, "--num-records", "10000")
    assert ", 10000, " in said, said


def idempotent_and_plain_producers(tools: Tools) -> None:
    topic = tools.topic()
    for setting in ("enable.idempotence=true", "enable.idempotence=false"):
        tools.fill(topic, 3000, setting, size=1000)
    equal(tools.end_offsets(topic), {0: 6000})


def end_to_end_latency(tools: Tools) -> None:
    topic = tools.topic()
    arguments = ("--topic", topic, "--num-records", "500", "--producer-acks", "all")
    contains(tools.run("EndToEndLatency", *arguments, "--record-size", "100"), "50th")


def group_list_and_describe(tools: Tools) -> None:
    topic, group = _read_group(tools)
    contains(tools.run(GROUPS, "--list"), group)
    contains(tools.run("GroupsCommand", "--list"), group)
    said = tools.run(GROUPS, "--describe", "--group", group)
    rows = [line.split() for line in said.splitlines() if line.startswith(group)]
    equal(sum(int(row[3]) for row in rows), 300)
    equal({(row[1], row[5]) for row in rows}, {(topic, "0")})
    state = tools.run(GROUPS, "--describe", "--group", group, "--state")
    contains(state, "Empty")
    contains(tools.run(GROUPS, "--describe", "--group", group, "--members"), "no active members")


def group_reset_and_delete(tools: Tools) -> None:
    topic, group = _read_group(tools)
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    tools.run(GROUPS, *reset, "--to-earliest", "--execute")
    said = tools.run(GROUPS, "--describe", "--group", group)
    rows = [line.split() for line in said.splitlines() if line.startswith(group)]
    equal({row[3] for row in rows}, {"0"})
    equal(sum(int(row[5]) for row in rows), 300)
    tools.run(GROUPS, *reset, "--shift-by", "10", "--execute")
    tools.run(GROUPS, *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
    said = tools.run(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    contains(said, "Successful")
    contains(tools.run(GROUPS, "--delete", "--group", group), "successful")
    assert group not in tools.run(GROUPS, "--list")


def console_producer_and_consumer(tools: Tools) -> None:
    topic = tools.topic()
    produced(tools, topic, 20, "--value-prefix", "7")
    arguments = ("--topic", topic, "--from-beginning", "--max-messages", "20")
    said = tools.run("consumer.ConsoleConsumer", *arguments)
    lines = [line for line in said.splitlines() if line.startswith("7.")]
    equal(lines, [f"7.{number}" for number in range(20)])


TESTS = (
    verifiable_producer_and_consumer,
    verifiable_share_consumer,
    every_compression,
    idempotent_and_plain_producers,
    end_to_end_latency,
    group_list_and_describe,
    group_reset_and_delete,
    console_producer_and_consumer,
)
