"""One consumer group as a store: commits and their metadata, without a member.

A pipeline commits and reads for as long as it runs, over restarts of its broker, so it does that
with a consumer that subscribes to nothing. librdkafka's AdminClient sends the same requests, but
ends the whole process with a failed assertion when a broker goes away and returns while one of
them waits (its issues 3663 and 4605). It is used where the consumer has no such request: to read
a group without knowing its partitions, and to delete it; each time with a new client, except by a
reader that ends at once.

Works with any broker that speaks OffsetCommit, OffsetFetch and DeleteGroups. Kafka refuses such a
commit while the group has members, so a pipeline needs a group that no consumer joins.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.kafka.committed import metadata_of

# Kafka's default for `offset.metadata.max.bytes`; a broker refuses more.
MAX_METADATA_BYTES: Final = 4_096
TIMEOUT_S: Final = 5
_PAUSE_S: Final = 0.1

Partition = tuple[str, int]


class GroupError(Exception):
    """A request to the group failed; the message is the broker's or librdkafka's reason."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One partition's committed offset and what was committed with it.

    Of a read, `metadata` may have more behind what was committed: see `kafka.committed`.
    """

    offset: int
    metadata: str = ""


class Group:
    """A consumer group, reached with librdkafka's settings (`bootstrap.servers` and others).

    `admin`: the AdminClient of a reader that ends at once; without it each request makes its own.
    """

    def __init__(self, settings: Mapping[str, str], name: str, admin: Any = None) -> None:
        self.name = name
        self.bootstrap_servers = settings["bootstrap.servers"]
        self._settings = dict(settings)
        self._given_admin = admin
        self._consumer: Any = None

    def companion(self, suffix: str) -> Group:
        """Return the group `<name>.<suffix>`."""
        return Group(self._settings, f"{self.name}.{suffix}", self._given_admin)

    def commit(self, commits: Mapping[Partition, Commit]) -> None:
        """Commit all partitions in one request. Raises GroupError."""
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [
            TopicPartition(topic, partition, commit.offset, commit.metadata)
            for (topic, partition), commit in commits.items()
        ]
        # Without a coordinator librdkafka lets a commit wait for a minute. To read has a time-out.
        self.read(list(commits)[:1])
        try:
            answers = self._client().commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise GroupError(_reason(error.args[0])) from error
        _check(answers)

    def read(self, partitions: Iterable[Partition]) -> dict[Partition, Commit]:
        """Return what is committed for these partitions. Raises GroupError."""
        from confluent_kafka import KafkaException, TopicPartition

        wanted = [TopicPartition(topic, partition) for topic, partition in partitions]
        try:
            answers = self._client().committed(wanted, timeout=TIMEOUT_S)
        except KafkaException as error:
            raise GroupError(_reason(error.args[0])) from error
        return _commits(answers)

    def read_all(self) -> dict[Partition, Commit]:
        """Return what is committed for any partition. Raises GroupError."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        admin = self._admin()
        self._find_coordinator(admin)
        request = [ConsumerGroupTopicPartitions(self.name)]
        futures = admin.list_consumer_group_offsets(request, request_timeout=TIMEOUT_S)
        return _commits(self._result(futures).topic_partitions)

    def delete(self) -> None:
        """Delete the group and its commits; a group that does not exist is no error."""
        admin = self._admin()
        futures = admin.delete_consumer_groups([self.name], request_timeout=TIMEOUT_S)
        self._result(futures, none_is_right=True)

    def close(self) -> None:
        """Close the connections of commits and reads; a later request opens them again."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _find_coordinator(self, admin: Any) -> None:
        """Wait, at most TIMEOUT_S, until the group's coordinator answers as such.

        A coordinator that is still loading answers NOT_COORDINATOR, as every one does on a new
        cluster. Asked for offsets, librdkafka then ends the whole process with a segmentation
        fault (its issue 5040); asked for the group, it reports the error.
        """
        from confluent_kafka import KafkaError, KafkaException

        loading = (
            KafkaError.NOT_COORDINATOR,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        )
        until = time.monotonic() + TIMEOUT_S
        while True:
            futures = admin.describe_consumer_groups([self.name], request_timeout=TIMEOUT_S)
            try:
                self._result(futures, none_is_right=True)
                return
            except GroupError as error:
                cause = error.__cause__
                passes = isinstance(cause, KafkaException) and cause.args[0].code() in loading
                if not passes or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_S)

    def _result(self, futures: Mapping[str, Any], *, none_is_right: bool = False) -> Any:
        """Return the answer for this group; None, if that is right, for a group without commits."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return futures[self.name].result(timeout=2 * TIMEOUT_S)
        except KafkaException as error:
            if none_is_right and error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            raise GroupError(_reason(error.args[0])) from error
        except TimeoutError as error:
            raise GroupError(f"no answer within {2 * TIMEOUT_S} s") from error

    def _client(self) -> Any:
        from confluent_kafka import Consumer, KafkaException

        if self._consumer is None:
            own = {"group.id": self.name, "enable.auto.commit": False, "log_level": 0}
            try:
                self._consumer = Consumer({**self._settings, **own})
            except KafkaException as error:
                raise GroupError(_reason(error.args[0])) from error
        return self._consumer

    def _admin(self) -> Any:
        return self._given_admin or new_admin(self._settings)


def new_admin(settings: Mapping[str, str]) -> Any:
    """Return an AdminClient. Raises GroupError for settings that librdkafka refuses."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return AdminClient({**settings, "log_level": 0})
    except KafkaException as error:
        raise GroupError(_reason(error.args[0])) from error


def _commits(answers: Iterable[Any]) -> dict[Partition, Commit]:
    _check(answers)
    return {
        (answer.topic, answer.partition): Commit(answer.offset, metadata_of(answer))
        for answer in answers
        if answer.offset >= 0
    }


def _check(answers: Iterable[Any]) -> None:
    for answer in answers:
        if answer.error:
            raise GroupError(_reason(answer.error))


def _reason(error: Any) -> str:
    return str(error.str()).strip()
