"""Requests about transactions, for which librdkafka has no call (KIP-664).

Only the coordinator of a transactional id knows its state, and only the replicas of a partition
know its producers. So each request goes to the brokers that know, over plain connections. The
requests are those of Kafka's Admin client, so every method works with Apache Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.cli.client import Connection
from ottla.cli.cluster_client import NoAnswer, refusal
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.plain_security import Security, security_of
from ottla.cli.supported_versions import ask_supported
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

FIND_COORDINATOR: Final = 10
INIT_PRODUCER_ID: Final = 22
WRITE_TXN_MARKERS: Final = 27
DESCRIBE_PRODUCERS: Final = 61
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
FIND_VERSION: Final = 4
INIT_VERSION: Final = 4
MARKERS_VERSION: Final = 1
"""The first version that every supported Kafka has. The marker's epoch is the producer's own."""

TRANSACTION: Final = 1
"""The key type of FindCoordinator."""
MAX_PARTITIONS: Final = 500
"""Of one DescribeProducers request, as in Kafka's tool."""
RETRY_FOR_S: Final = 30.0
RETRY_PAUSE_S: Final = 0.1
NO_LEADER: Final = "it has no leader"

RETRIABLE: Final = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Another broker is about to coordinate, or __transaction_state is being created."""

# The Apache Kafka that has the request in this version.
SINCE: Final = {
    (DESCRIBE_PRODUCERS, 0): "2.8",
    (DESCRIBE_TRANSACTIONS, 0): "3.0",
    (LIST_TRANSACTIONS, 0): "3.0",
    (LIST_TRANSACTIONS, 1): "3.8",
    (LIST_TRANSACTIONS, 2): "4.1",
}


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
    partitions: tuple[tuple[str, int], ...]
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
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition


class TransactionClient:
    """Asks the brokers of a cluster. Every method raises Failed."""

    def __init__(self, connection: Connection) -> None:
        self._bootstrap = connection.bootstrap
        self._security = security_of(connection.settings)
        metadata = connection.metadata()
        self._brokers = {
            number: f"{each.host}:{each.port}" for number, each in metadata.brokers.items()
        }
        self._leaders = {
            (name, index): partition.leader
            for name, topic in metadata.topics.items()
            for index, partition in topic.partitions.items()
        }

    def partitions(self, topic: str | None = None) -> list[tuple[str, int]]:
        """Those of a topic, or of all."""
        return sorted(place for place in self._leaders if topic in (None, place[0]))

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self._leaders})

    def listed(
        self,
        states: Sequence[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """ListTransactions of every broker."""
        # KIP-994 adds the duration, KIP-1152 the pattern.
        version = 2 if pattern is not None else int(duration_ms >= 0)
        build = messages_of(LIST_TRANSACTIONS, version, "request")
        request = build.ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
        )
        found = []
        for number, address in sorted(self._brokers.items()):
            response = self._ask(address, request)
            if response.error_code is ErrorCode.invalid_regular_expression:
                raise UsageFailed(
                    f"--id-pattern: {pattern!r} is not a regular expression.",
                    "Brokers use RE2: https://github.com/google/re2/wiki/Syntax",
                )
            if response.error_code is not ErrorCode.none:
                doing = f"list the transactions of broker {number}"
                raise refusal(doing, response.error_code, None)
            found += [
                ListedTransaction(
                    each.transactional_id, number, each.transaction_state, each.producer_id
                )
                for each in response.transaction_states
            ]
        return sorted(found)

    def described(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """DescribeTransactions by id, without the ids that do not exist."""
        names = list(dict.fromkeys(transactional_ids))
        found: dict[str, DescribedTransaction] = {}
        missing, until = names, time.monotonic() + RETRY_FOR_S
        while missing:
            again = []
            for (coordinator, address), some in self._coordinators(missing).items():
                build = messages_of(DESCRIBE_TRANSACTIONS, 0, "request")
                request = build.DescribeTransactionsRequest(transactional_ids=tuple(some))
                for each in self._ask(address, request).transaction_states:
                    code = each.error_code
                    if code is ErrorCode.none:
                        found[each.transactional_id] = _described(each, coordinator)
                    elif code in RETRIABLE and time.monotonic() < until:
                        again.append(each.transactional_id)
                    elif code is not ErrorCode.transactional_id_not_found:
                        raise refusal(f"describe {each.transactional_id!r}", code, None)
            missing = again
            if missing:
                time.sleep(RETRY_PAUSE_S)
        return {name: found[name] for name in names if name in found}

    def _coordinators(self, names: Sequence[str]) -> dict[tuple[int, str], list[str]]:
        """The transactional ids by the id and address of their coordinator."""
        build = messages_of(FIND_COORDINATOR, FIND_VERSION, "request")
        request = build.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=tuple(names))
        until = time.monotonic() + RETRY_FOR_S
        while True:
            found: dict[tuple[int, str], list[str]] = {}
            refused = None
            for each in self._ask(self._bootstrap, request).coordinators:
                if each.error_code is ErrorCode.none:
                    where = (each.node_id, f"{each.host}:{each.port}")
                    found.setdefault(where, []).append(each.key)
                else:
                    refused = each
            if refused is None:
                return found
            if refused.error_code not in RETRIABLE or time.monotonic() > until:
                doing = f"find the coordinator of {refused.key!r}"
                raise refusal(doing, refused.error_code, refused.error_message)
            time.sleep(RETRY_PAUSE_S)

    def open_producers(
        self, partitions: Iterable[tuple[str, int]]
    ) -> tuple[list[OpenProducer], dict[tuple[str, int], str]]:
        """The producers with an open transaction, from the leader of each partition; and for the
        partitions that could not be asked, the reason as part of a sentence.
        """
        found: list[OpenProducer] = []
        why: dict[tuple[str, int], str] = {}
        asked: dict[int, list[tuple[str, int]]] = {}
        for place in partitions:
            leader = self._leaders.get(place, -1)
            if leader in self._brokers:
                asked.setdefault(leader, []).append(place)
            else:
                why[place] = NO_LEADER
        for leader, places in sorted(asked.items()):
            for start in range(0, len(places), MAX_PARTITIONS):
                some = places[start : start + MAX_PARTITIONS]
                try:
                    response = self._ask(self._brokers[leader], _describe_producers(some))
                except NoAnswer as failure:
                    why.update(dict.fromkeys(some, failure.message.rstrip(".")))
                    continue
                for topic in response.topics:
                    for each in topic.partitions:
                        if each.error_code is ErrorCode.none:
                            found += _open(topic.name, each)
                        else:
                            reason = each.error_message or each.error_code.name.replace("_", " ")
                            why[topic.name, each.partition_index] = reason.rstrip(".")
        return found, why

    def abort_in_partition(self, hanging: OpenProducer) -> None:
        """Writes the abort marker that the coordinator of the transaction does not write."""
        build = messages_of(WRITE_TXN_MARKERS, MARKERS_VERSION, "request")
        topic = build.WritableTxnMarkerTopic(
            name=hanging.topic, partition_indexes=(hanging.partition,)
        )
        marker = build.WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.epoch,
            transaction_result=False,
            topics=(topic,),
            # Without a marker so far there is no epoch to go by; 0 is at most that of any
            # coordinator (Kafka's TransactionsCommand).
            coordinator_epoch=max(hanging.coordinator_epoch, 0),
        )
        request = build.WriteTxnMarkersRequest(markers=(marker,))
        response = self._ask(self._brokers[self._leaders[hanging.place]], request)
        codes = [
            each.error_code
            for written in response.markers
            for topic in written.topics
            for each in topic.partitions
        ]
        for code in codes:
            if code is not ErrorCode.none:
                raise refusal("abort the transaction", code, None)
        if not codes:
            raise Failed("cannot abort the transaction: the broker's answer is empty.")

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        """Fences the producer of a transactional id as a new one does, so its open transaction is
        aborted (Admin.fenceProducers). `timeout_ms` is the transaction timeout from then on.
        """
        build = messages_of(INIT_PRODUCER_ID, INIT_VERSION, "request")
        request = build.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        until = time.monotonic() + RETRY_FOR_S
        while True:
            ((_, address),) = self._coordinators([transactional_id])
            code = self._ask(address, request).error_code
            if code is ErrorCode.none:
                return
            is_aborting = code is ErrorCode.concurrent_transactions
            if not is_aborting and code not in RETRIABLE:
                raise refusal(f"fence the producer of {transactional_id!r}", code, None)
            if time.monotonic() > until:
                raise Failed(
                    f"the transaction of {transactional_id!r} is not aborted after "
                    f"{RETRY_FOR_S:g} s.",
                    f"To see what is left: ottla transaction describe {transactional_id}",
                )
            time.sleep(RETRY_PAUSE_S)

    def _ask(self, address: str, request: Any) -> Any:
        return _ask(address, request, self._security)


def _ask(address: str, request: Any, security: Security) -> Any:
    """The response. Raises Failed that says so if the broker does not know the request."""
    since = SINCE.get((request.__api_key__, request.__version__))
    return ask_supported(address, request, security, since)


def _described(each: Any, coordinator: int) -> DescribedTransaction:
    return DescribedTransaction(
        each.transactional_id,
        coordinator,
        each.transaction_state,
        each.producer_id,
        each.producer_epoch,
        each.transaction_timeout,
        each.transaction_start_time,
        tuple((topic.topic, index) for topic in each.topics for index in topic.partitions),
    )


def _describe_producers(partitions: Sequence[tuple[str, int]]) -> Any:
    build = messages_of(DESCRIBE_PRODUCERS, 0, "request")
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return build.DescribeProducersRequest(
        topics=tuple(
            build.TopicRequest(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in topics.items()
        )
    )


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
