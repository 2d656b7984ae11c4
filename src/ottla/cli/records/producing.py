"""What the commands that produce share: their options, and the topic that they produce to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.client import Connection
from ottla.cli.failures import unknown

COMPRESSION: Final = click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    help="The compression codec.",
)
ACKS: Final = click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    help="Who must have the record: all in-sync replicas, 1 (the leader), 0 (none).",
)
CREATE: Final = click.option(
    "--create", is_flag=True, help="Create the topic if it does not exist."
)


def sending_settings(compression: str, acks: str) -> dict[str, Any]:
    """librdkafka's settings for these options."""
    return {
        "compression.type": compression,
        "acks": acks,
        "enable.idempotence": acks == "all",
    }


def count_partitions(connection: Connection, topic: str, create: bool) -> int:
    """The number of partitions of the topic, which is created if requested."""
    topics = connection.topics()
    if topic not in topics:
        if not create:
            hint = f"To create it: ottla topic create {topic}, or add --create."
            if Path(topic).is_file():
                hint = f"To send the lines of this file: ottla produce TOPIC --file {topic}"
            raise unknown("topic", topic, topics, hint)
        from confluent_kafka.admin import NewTopic

        futures = connection.admin.create_topics([NewTopic(topic, -1, -1)])
        connection.wait(futures[topic], f"create topic {topic!r}")
        connection.settled_topics({topic: 1})
        topics = connection.topics()
    return len(topics[topic].partitions)
