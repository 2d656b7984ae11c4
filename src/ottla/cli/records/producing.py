"""What the commands that produce share: their options, and the topic that they produce to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.failures import unknown
from ottla.client.admin.topics import NewTopic, create_topics, known_topics
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.records.compression import Compression

COMPRESSION: Final = click.option(
    "--compression",
    type=click.Choice([each.name for each in Compression]),
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


def count_partitions(client: Client, topic: str, create: bool) -> int:
    """The number of partitions of the topic, which is created if requested. Raises Failed, and
    ClientError.
    """
    found = client.metadata([topic]).topics.get(topic)
    if found is not None and found.error is ErrorCode.topic_authorization_failed:
        raise RefusedError(f"produce to {topic!r}", found.error, None, Needs("Write", topic))
    if found is None or not found.partitions:
        if not create:
            hint = f"To create it: ottla topic create {topic}, or add --create."
            if Path(topic).is_file():
                hint = f"To send the lines of this file: ottla produce TOPIC --file {topic}"
            raise unknown("topic", topic, client.metadata().topics, hint)
        create_topics(client, [NewTopic(topic)])
        found = known_topics(client, [topic])[topic]
    return len(found.partitions)
