"""One consumer group as a place to keep things: commits and their metadata, without a member.

Each call is one request with a time-out. Works with any broker that speaks Kafka's AdminClient
requests OffsetCommit, OffsetFetch and DeleteGroups. Kafka refuses such a commit while the group
has members, so a pipeline needs a group that no consumer joins.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# Kafka's default for `offset.metadata.max.bytes`; a broker refuses more.
MAX_METADATA_BYTES: Final = 4_096
TIMEOUT_S: Final = 5
_PAUSE_S: Final = 0.1

Partition = tuple[str, int]


class GroupError(Exception):
    """A request to the group failed; the message is the broker's or librdkafka's reason."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One partition's committed offset and what was committed with it."""

    offset: int
    metadata: str = ""


class Group:
    """A consumer group, reached with librdkafka's settings (`bootstrap.servers` and others)."""

    def __init__(self, settings: Mapping[str, str], name: str) -> None:
        self.name = name
        self.bootstrap_servers = settings["bootstrap.servers"]
        self._settings = dict(settings)
        self._admin: Any = None

    def companion(self, suffix: str) -> Group:
        """Return the group `<name>.<suffix>`, reached through the same client."""
        other = Group(self._settings, f"{self.name}.{suffix}")
        other._admin = self._client()
        return other

    def commit(self, commits: Mapping[Partition, Commit]) -> None:
        """Commit all partitions in one request. Raises GroupError."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        offsets = [
            TopicPartition(topic, partition, commit.offset, commit.metadata)
            for (topic, partition), commit in commits.items()
        ]
        request = [ConsumerGroupTopicPartitions(self.name, offsets)]
        ask = self._client().alter_consumer_group_offsets
        for answer in self._ask(ask, request).topic_partitions:
            if answer.error:
                raise GroupError(_reason(answer.error))

    def read(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, Commit]:
        """Return what is committed for these partitions, or for all. Raises GroupError."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = None
        if partitions is not None:
            wanted = [TopicPartition(topic, partition) for topic, partition in partitions]
        self._find_coordinator()
        request = [ConsumerGroupTopicPartitions(self.name, wanted)]
        ask = self._client().list_consumer_group_offsets
        found: dict[Partition, Commit] = {}
        for answer in self._ask(ask, request).topic_partitions:
            if answer.error:
                raise GroupError(_reason(answer.error))
            if answer.offset >= 0:
                # librdkafka hands over the NUL that ends C's strings.
                metadata = (answer.metadata or "").rstrip("\0")
                found[answer.topic, answer.partition] = Commit(answer.offset, metadata)
        return found

    def _find_coordinator(self) -> None:
        """Wait, at most TIMEOUT_S, until the group's coordinator answers as such.

        A coordinator that is still loading answers NOT_COORDINATOR, as every one does on a new
        cluster. Asked for offsets, librdkafka then ends the whole process with a segmentation
        fault (its issue 5040); asked for the group, it reports the error.
        """
        from confluent_kafka import KafkaError, KafkaException

        until = time.monotonic() + TIMEOUT_S
        while True:
            asked = self._client().describe_consumer_groups([self.name], request_timeout=TIMEOUT_S)
            try:
                asked[self.name].result(timeout=2 * TIMEOUT_S)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.GROUP_ID_NOT_FOUND:
                    return
                loading = (
                    KafkaError.NOT_COORDINATOR,
                    KafkaError.COORDINATOR_NOT_AVAILABLE,
                    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
                )
                if code not in loading or time.monotonic() > until:
                    raise GroupError(_reason(error.args[0])) from error
            except TimeoutError as error:
                raise GroupError(f"no answer within {2 * TIMEOUT_S} s") from error
            time.sleep(_PAUSE_S)

    def delete(self) -> None:
        """Delete the group and its commits; a group that is not there is no error."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            futures = self._client().delete_consumer_groups([self.name], request_timeout=TIMEOUT_S)
            futures[self.name].result(timeout=2 * TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise GroupError(_reason(error.args[0])) from error

    def _ask(self, ask: Any, request: list[Any]) -> Any:
        from confluent_kafka import KafkaException

        try:
            futures = ask(request, request_timeout=TIMEOUT_S)
            return futures[self.name].result(timeout=2 * TIMEOUT_S)
        except KafkaException as error:
            raise GroupError(_reason(error.args[0])) from error
        except TimeoutError as error:
            raise GroupError(f"no answer within {2 * TIMEOUT_S} s") from error

    def _client(self) -> Any:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            try:
                self._admin = AdminClient({**self._settings, "log_level": 0})
            except KafkaException as error:
                raise GroupError(_reason(error.args[0])) from error
        return self._admin


def _reason(error: Any) -> str:
    return str(error.str()).strip()
