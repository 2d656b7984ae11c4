"""Topics and partitions that were named and must exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.cli.failures import Failed, unknown
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode

NO_TOPICS: Final = "No topics yet. Create one with: ottla topic create NAME"
MISSING: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)
BROKERS_HINT: Final = "To list all brokers: ottla cluster describe"
TOPICS_HINT: Final = "To list all topics: ottla topic list"


def existing_topics(
    client: Client, names: Sequence[str], operation: str = "Describe"
) -> dict[str, Topic]:
    """These topics by name. `operation` is what the command needs; it includes Describe. Raises
    Failed that names the first missing one, and ClientError.
    """
    topics = client.metadata(list(dict.fromkeys(names))).topics
    for name in names:
        error = topics[name].error if name in topics else MISSING[0]
        if error in MISSING:
            raise unknown("topic", name, client.metadata().topics, TOPICS_HINT)
        if error is ErrorCode.topic_authorization_failed:
            raise RefusedError(f"describe topic {name!r}", error, None, Needs(operation, name))
    return {name: topics[name] for name in names}


def partitions_of(
    topics: Mapping[str, Topic], wanted: Iterable[int] | None
) -> list[TopicPartition]:
    """The chosen partitions, in order. Raises Failed for one that does not exist."""
    chosen: list[TopicPartition] = []
    for name, topic in topics.items():
        for number in sorted(set(wanted)) if wanted else sorted(topic.partitions):
            check_partition(topic, number)
            chosen.append(TopicPartition(name, number))
    return chosen


def check_partition(topic: Topic, number: int) -> None:
    """Raises Failed for a partition that the topic does not have."""
    if number not in topic.partitions:
        last = len(topic.partitions) - 1
        raise Failed(f"topic {topic.name!r} has partitions 0 to {last}, not {number}.")


def check_brokers(numbers: Iterable[int], live: Iterable[int]) -> None:
    """Raises Failed for a broker that is not live."""
    known = sorted(live)
    for number in numbers:
        if number not in known:
            raise unknown("live broker", str(number), map(str, known), BROKERS_HINT)
