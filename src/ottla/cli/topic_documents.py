"""What is known of a topic, as the document that `--json` prints and the table is made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import TopicCollection

from ottla.cli.client import Connection
from ottla.cli.configs import describe_configs
from ottla.cli.offsets import end_offsets, first_offsets
from ottla.cli.screen import say, show_table


def plural(number: int, noun: str) -> str:
    """`1 partition`, `2,000 partitions`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def described_topics(connection: Connection, names: Sequence[str]) -> list[Any]:
    """librdkafka's descriptions (with topic ids), in the order of the names."""
    if not names:
        return []
    futures = connection.admin.describe_topics(
        TopicCollection(list(names)), request_timeout=connection.answer_timeout_s
    )
    return [connection.wait(futures[name], f"describe topic {name!r}") for name in names]


def topic_summary(topic: Any) -> dict[str, Any]:
    """The counts of one description."""
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
    }


def topic_documents(connection: Connection, names: Sequence[str]) -> list[dict[str, Any]]:
    """One document a topic: id, partitions with offsets, and the settings that are its own."""
    topics = described_topics(connection, names)
    # A partition without a leader has nobody to ask.
    led = [
        (topic.name, each.id)
        for topic in topics
        for each in topic.partitions
        if each.leader is not None
    ]
    first, end = first_offsets(connection, led), end_offsets(connection, led)
    configs = describe_configs(connection, "topic", names)
    return [
        {
            "topic": topic.name,
            "id": str(topic.topic_id),
            "internal": topic.is_internal,
            "partitions": [
                {
                    "partition": each.id,
                    "leader": each.leader.id if each.leader is not None else None,
                    "replicas": [node.id for node in each.replicas],
                    "in_sync": [node.id for node in each.isr],
                    "start_offset": first.get((topic.name, each.id)),
                    "end_offset": end.get((topic.name, each.id)),
                }
                for each in topic.partitions
            ],
            "config": {
                entry["name"]: entry["value"]
                for entry in configs[topic.name]
                if entry["source"] == "topic"
            },
        }
        for topic in topics
    ]


def show_topic(document: dict[str, Any]) -> None:
    """One topic for a person."""
    partitions = document["partitions"]
    title = f"{document['topic']}: {plural(len(partitions), 'partition')}"
    show_table(
        ["partition", "leader", "replicas", "in sync", "start offset", "end offset"],
        [
            [
                each["partition"],
                each["leader"],
                " ".join(map(str, each["replicas"])),
                " ".join(map(str, each["in_sync"])),
                each["start_offset"],
                each["end_offset"],
            ]
            for each in partitions
        ],
        title=title,
    )
    for name, value in document["config"].items():
        say(f"{name}={value}")
