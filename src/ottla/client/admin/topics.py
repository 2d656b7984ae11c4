"""Creating, extending and deleting topics (KIP-4, KIP-195), and what all know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.controller import code_of_each
from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs, RefusedError
from ottla.client.metadata import Topic
from ottla.client.patience import poll_until
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
WITH_DEFAULTS: Final = 4
"""The first version that takes the broker's defaults (KIP-464)."""
DELETE_BY_NAME: Final = 5
"""Later versions have topic ids as well, which is not needed here."""
DEFAULT: Final = -1
ANSWER_TIMEOUT_MS: Final = 25_000
SETTLE_PAUSE_S: Final = 0.05
INTERNAL_TOPICS: Final = {
    "__consumer_offsets": "it has the committed offsets of all groups",
    "__transaction_state": "it has the state of all transactional producers",
    "__share_group_state": "it has the positions of all share groups",
    "__cluster_metadata": "it has the cluster's metadata",
}
"""With what they are for."""


class NewTopic(NamedTuple):
    """A topic to create: with numbers, or with the brokers of each partition."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignment: Sequence[Sequence[int]] = ()
    settings: Mapping[str, str] = {}


def is_internal(topic: str) -> bool:
    """Whether this is one of Kafka's internal topics."""
    return topic in INTERNAL_TOPICS


def known_topics(client: Client, names: Sequence[str]) -> dict[str, Topic]:
    """Those of these topics that exist, and may be described."""
    found = client.metadata(names).topics
    return {name: topic for name, topic in found.items() if topic.partitions}


def replication_factor_of(topic: Topic) -> int:
    """The largest number of replicas; they may differ."""
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)


def create_topics(client: Client, topics: Sequence[NewTopic]) -> None:
    """Creates them, and waits until each partition has a leader: the controller responds before
    every broker knows them. Raises RefusedError for the first that is refused.
    """

    def build(messages: Messages) -> Any:
        return messages.CreateTopicsRequest(
            topics=tuple(
                messages.CreatableTopic(
                    name=each.name,
                    num_partitions=DEFAULT if each.assignment else each.partitions,
                    replication_factor=DEFAULT if each.assignment else each.replication_factor,
                    assignments=tuple(
                        messages.CreatableReplicaAssignment(
                            partition_index=index, broker_ids=tuple(brokers)
                        )
                        for index, brokers in enumerate(each.assignment)
                    ),
                    configs=tuple(
                        messages.CreatableTopicConfig(name=name, value=value)
                        for name, value in each.settings.items()
                    ),
                )
                for each in topics
            ),
            timeout=ANSWER_TIMEOUT_MS,
            validate_only=False,
        )

    oldest = 2 if all(has_numbers(each) for each in topics) else WITH_DEFAULTS
    question = Question(CREATE_TOPICS, 7, build, oldest, "2.4")
    response = client.ask_controller(question, "create topics", code_of_each("topics"))
    _raise_first(response.topics, "create topic", "Create")
    await_leaders(
        client, {each.name: len(each.assignment) or max(1, each.partitions) for each in topics}
    )


def has_numbers(topic: NewTopic) -> bool:
    """Whether nothing is left to the broker's defaults."""
    return bool(topic.assignment) or DEFAULT not in (topic.partitions, topic.replication_factor)


def add_partitions(client: Client, topic: str, partitions: int) -> None:
    """Gives a topic so many partitions, and waits for their leaders. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        new = messages.CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
        return messages.CreatePartitionsRequest(
            topics=(new,), timeout=ANSWER_TIMEOUT_MS, validate_only=False
        )

    question, doing = Question(CREATE_PARTITIONS, 3, build), "add partitions to"
    response = client.ask_controller(question, f"{doing} {topic!r}", code_of_each("results"))
    _raise_first(response.results, doing, "Alter")
    await_leaders(client, {topic: partitions})


def delete_topic(client: Client, topic: str) -> None:
    """Deletes a topic with all its records. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        return messages.DeleteTopicsRequest(topic_names=(topic,), timeout=ANSWER_TIMEOUT_MS)

    question = Question(DELETE_TOPICS, DELETE_BY_NAME, build, 1)
    doing = f"delete topic {topic!r}"
    response = client.ask_controller(question, doing, code_of_each("responses"))
    _raise_first(response.responses, "delete topic", "Delete")


def await_leaders(client: Client, partitions: Mapping[str, int]) -> None:
    """Waits until each topic has that many partitions, and each partition a leader. Raises
    ClientError.
    """

    def look() -> dict[str, Topic]:
        return client.metadata(list(partitions)).topics

    def are_led(topics: Mapping[str, Topic]) -> bool:
        return all(
            name in topics and has_leaders(topics[name], count)
            for name, count in partitions.items()
        )

    within_s = client.patience.answer_s
    found = poll_until(
        look, are_led, within_s=within_s, pause_s=SETTLE_PAUSE_S, patience=client.patience
    )
    if not are_led(found):
        raise ClientError(
            f"created {', '.join(partitions)}, but not every partition has a leader after "
            f"{within_s:g} s."
        )


def has_leaders(topic: Topic, partitions: int) -> bool:
    """Whether it has that many partitions, all with a leader."""
    found = topic.partitions.values()
    return len(found) >= partitions and all(each.leader >= 0 for each in found)


def _raise_first(items: Iterable[Any], doing: str, operation: str) -> None:
    for each in items:
        if each.error_code is not ErrorCode.none:
            message = getattr(each, "error_message", None)
            raise RefusedError(
                f"{doing} {each.name!r}", each.error_code, message, Needs(operation, each.name)
            )
