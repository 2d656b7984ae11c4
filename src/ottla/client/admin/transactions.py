"""Transactions: their states, and which are open in the partitions (KIP-664).

Only the coordinator of a transactional id knows its state, and only the replicas of a partition
know its producers. So each request goes to the brokers that know. The requests are those of Kafka's
Admin client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.errors import ClientError, Needs, NoAnswerError, RefusedError, reason_of
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

INIT_PRODUCER_ID: Final = 22
WRITE_TXN_MARKERS: Final = 27
DESCRIBE_PRODUCERS: Final = 61
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
INIT_VERSION: Final = 4
MARKERS_VERSION: Final = 1
"""The first version that every supported Kafka has. The marker's epoch is the producer's own."""
MAX_PARTITIONS: Final = 500
"""Of one DescribeProducers request, as in Kafka's tool."""
NO_LEADER: Final = "it has no leader"

LIST_SINCE: Final = ("3.0", "3.8", "4.1")
"""The Apache Kafka that has ListTransactions in version 0, 1 and 2."""


class ListedTransaction(NamedTuple):
    """A transactional id as ListTransactions has it."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int


class DescribedTransaction(NamedTuple):
    """A transactional id as DescribeTransactions has it."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    """-1 if the id had no transaction so far."""
    partitions: tuple[TopicPartition, ...]
    """While markers are written, those that lack theirs."""


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """A producer with an open transaction in a partition, as the partition's leader has it."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    """Of its last marker here; -1 if there is none."""
    first_offset: int
    last_write_ms: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Transactions:
    """The transactions of a cluster, whose partitions and leaders are read once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._metadata = client.metadata()
        self._leaders = self._metadata.leaders

    def partitions(self, topic: str | None = None) -> list[TopicPartition]:
        """Those of a topic, or of all."""
        return sorted(
            topic_partition
            for topic_partition in self._leaders
            if topic in (None, topic_partition.topic)
        )

    @property
    def topics(self) -> list[str]:
        return sorted(self._metadata.topics)

    def listed(
        self,
        states: Sequence[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """ListTransactions of every broker. Raises RefusedError, with
        invalid_regular_expression for a wrong `pattern`.
        """
        # KIP-994 adds the duration, KIP-1152 the pattern.
        version = 2 if pattern is not None else int(duration_ms >= 0)
        wanted = tuple(producer_ids)

        def build(messages: Messages) -> Any:
            return messages.ListTransactionsRequest(
                state_filters=tuple(states),
                producer_id_filters=wanted,
                duration_filter=duration_ms,
                transactional_id_pattern=pattern,
            )

        newest = len(LIST_SINCE) - 1
        question = Question(LIST_TRANSACTIONS, newest, build, version, LIST_SINCE[version])
        found = []
        for number in sorted(self._metadata.brokers):
            response = self._client.ask_broker(number, question)
            if response.error_code is not ErrorCode.none:
                doing = f"list the transactions of broker {number}"
                raise RefusedError(doing, response.error_code, None, Needs("Describe"))
            found += [
                ListedTransaction(
                    each.transactional_id, number, each.transaction_state, each.producer_id
                )
                for each in response.transaction_states
            ]
        return sorted(found)

    def described(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """DescribeTransactions by id, without the ids that do not exist."""
        asked = self._client.ask_coordinators(
            Coordinated.TRANSACTION,
            transactional_ids,
            _describe_transactions,
            lambda response: (
                (each.transactional_id, each) for each in response.transaction_states
            ),
        )
        found: dict[str, DescribedTransaction] = {}
        for name, (broker, each) in asked.items():
            if each.error_code is ErrorCode.none:
                found[name] = _described(each, broker.id)
            elif each.error_code is not ErrorCode.transactional_id_not_found:
                raise RefusedError(
                    f"describe {name!r}", each.error_code, None, Needs("Describe", name)
                )
        return found

    def open_producers(
        self, partitions: Iterable[tuple[str, int]]
    ) -> tuple[list[OpenProducer], dict[TopicPartition, str]]:
        """The producers with an open transaction, from the leader of each partition; and for the
        partitions that could not be asked, the reason as a part of a sentence.
        """
        found: list[OpenProducer] = []
        why: dict[TopicPartition, str] = {}
        asked: dict[int, list[TopicPartition]] = {}
        for topic_partition in (TopicPartition(*each) for each in partitions):
            leader = self._leaders.get(topic_partition, -1)
            if leader in self._metadata.brokers:
                asked.setdefault(leader, []).append(topic_partition)
            else:
                why[topic_partition] = NO_LEADER
        for leader, led in sorted(asked.items()):
            for start in range(0, len(led), MAX_PARTITIONS):
                some = led[start : start + MAX_PARTITIONS]
                try:
                    response = self._client.ask_broker(leader, _describe_producers(some))
                except NoAnswerError as error:
                    why.update(dict.fromkeys(some, error.reason))
                    continue
                for topic in response.topics:
                    for each in topic.partitions:
                        if each.error_code is ErrorCode.none:
                            found += _open(topic.name, each)
                        else:
                            topic_partition = TopicPartition(topic.name, each.partition_index)
                            why[topic_partition] = reason_of(each.error_code, each.error_message)
        return found, why

    def abort_in_partition(self, hanging: OpenProducer) -> None:
        """Writes the abort marker that the coordinator of the transaction does not write."""

        def build(messages: Messages) -> Any:
            topic = messages.WritableTxnMarkerTopic(
                name=hanging.topic, partition_indexes=(hanging.partition,)
            )
            marker = messages.WritableTxnMarker(
                producer_id=hanging.producer_id,
                producer_epoch=hanging.epoch,
                transaction_result=False,
                topics=(topic,),
                # Without a marker so far there is no epoch to go by; 0 is at most that of any
                # coordinator (Kafka's TransactionsCommand).
                coordinator_epoch=max(hanging.coordinator_epoch, 0),
            )
            return messages.WriteTxnMarkersRequest(markers=(marker,))

        question = Question(WRITE_TXN_MARKERS, MARKERS_VERSION, build, MARKERS_VERSION)
        response = self._client.ask_broker(self._leaders[hanging.topic_partition], question)
        codes = [
            each.error_code
            for written in response.markers
            for topic in written.topics
            for each in topic.partitions
        ]
        for code in codes:
            if code is not ErrorCode.none:
                raise RefusedError("abort the transaction", code, None, Needs("Alter"))
        if not codes:
            raise ClientError("cannot abort the transaction: the broker's answer is empty.")

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        """Fences the producer of a transactional id as a new one does, so its open transaction is
        aborted (Admin.fenceProducers). `timeout_ms` is the transaction timeout from then on.

        Raises RefusedError, with concurrent_transactions if the transaction is not aborted in time.
        """

        def build(messages: Messages) -> Any:
            return messages.InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout=timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
            )

        self._client.ask_coordinator(
            Coordinated.TRANSACTION,
            transactional_id,
            Question(INIT_PRODUCER_ID, INIT_VERSION, build),
            f"fence the producer of {transactional_id!r}",
            passing=[ErrorCode.concurrent_transactions],
        )


def _describe_transactions(transactional_ids: Sequence[str]) -> Question:
    def build(messages: Messages) -> Any:
        return messages.DescribeTransactionsRequest(transactional_ids=tuple(transactional_ids))

    return Question(DESCRIBE_TRANSACTIONS, 0, build, since="3.0")


def _described(each: Any, coordinator: int) -> DescribedTransaction:
    return DescribedTransaction(
        each.transactional_id,
        coordinator,
        each.transaction_state,
        each.producer_id,
        each.producer_epoch,
        each.transaction_timeout,
        each.transaction_start_time,
        tuple(
            TopicPartition(topic.topic, index)
            for topic in each.topics
            for index in topic.partitions
        ),
    )


def _describe_producers(partitions: Sequence[TopicPartition]) -> Question:
    def build(messages: Messages) -> Any:
        return messages.DescribeProducersRequest(
            topics=tuple(
                messages.TopicRequest(name=topic, partition_indexes=tuple(indexes))
                for topic, indexes in by_topic(partitions).items()
            )
        )

    return Question(DESCRIBE_PRODUCERS, 0, build, since="2.8")


def _open(topic: str, partition: Any) -> list[OpenProducer]:
    return [
        OpenProducer(
            topic,
            partition.partition_index,
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.current_txn_start_offset,
            state.last_timestamp,
        )
        for state in partition.active_producers
        if state.current_txn_start_offset >= 0
    ]
