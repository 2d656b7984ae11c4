"""The requests of one script to one broker, and its normalised answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from conformance.differential.known import LATE_END
from conformance.differential.normal import Names
from conformance.differential.wire import ClosedError, Wire
from ottla.client import wire
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.shards.step import ProducerEpoch

Introduce: TypeAlias = Callable[[wire.Wire], None]
NOBODY: Final = ProducerEpoch(-1, -1)
WAIT_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.02
TIMEOUT_MS: Final = 60_000
MAX_BYTES: Final = 1 << 20
FIRST_WITH_TOPIC_IDS: Final = 6
"""Version of TxnOffsetCommit (KIP-1319)."""
UNKNOWN_TOPIC: Final = UUID(int=4711)
RETRIED: Final = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Every client asks again, and how often it has to depends on the time."""


class NotInTimeError(Exception):
    """The broker does not reach the state that a script waits for."""


class Answer(NamedTuple):
    """One answer, in the form that is compared."""

    label: str
    content: Any


class Session:
    """One method for each request; `answers` has what came back."""

    def __init__(
        self,
        address: str,
        prefix: str,
        introduce: Introduce | None = None,
    ) -> None:
        """`prefix` makes names unique in the cluster. `introduce` makes a connection that of a
        broker, where brokers do not believe everybody.
        """
        self.answers: list[Answer] = []
        self._prefix = prefix
        self._wire = Wire(address)
        self._wire_of_broker = Wire(address, introduce)
        self._names = Names()
        self._topic_ids: dict[str, UUID] = {}
        self._end_versions: dict[str, int] = {}
        """The version of the last EndTxn that was obeyed, by transactional id."""

    def close(self) -> None:
        self._wire.close()
        self._wire_of_broker.close()

    def name(self, word: str) -> str:
        """A topic, group or transactional id of this script."""
        return f"{self._prefix}-{word}"

    def build(self, key: int, version: int) -> Any:
        return messages_of(key, version, "request")

    def record(self, label: str, content: Any) -> None:
        """Add a value to compare; names of this script lose their prefix."""
        text = self._names.normal(content)
        self.answers.append(Answer(label, _without(text, f"{self._prefix}-")))

    def ask(
        self, label: str, request: Any, *, is_recorded: bool = True, as_broker: bool = False
    ) -> Any:
        """Send a request, again while the answer depends on the time; None without an answer."""
        connection = self._wire_of_broker if as_broker else self._wire
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                response = connection.ask(request)
            except ClosedError:
                if is_recorded:
                    self.answers.append(Answer(label, "the connection is closed"))
                return None
            if not _codes(response) & RETRIED:
                break
            if time.monotonic() > until:
                raise NotInTimeError(f"{label}: {response!r}")
            time.sleep(PAUSE_SECONDS)
        if is_recorded:
            self.record(label, response)
        return response

    def ask_bytes(self, label: str, key: int, body: bytes) -> None:
        """Version 0 of a request; whether it is answered is compared."""
        try:
            self._wire.ask_bytes(key, body)
        except ClosedError:
            self.answers.append(Answer(label, "the connection is closed"))
        else:
            self.answers.append(Answer(label, "answered"))

    def find_coordinators(self) -> None:
        """Both brokers create the coordinators' topics at the first such request."""
        for kind in (0, 1):
            request = self.build(10, 3).FindCoordinatorRequest(
                key=self.name("first"), key_type=kind
            )
            self.ask("FindCoordinator", request, is_recorded=False)

    def coordinator(self, word: str, version: int) -> None:
        """The coordinator of a transactional id."""
        build, key = self.build(10, version), self.name(word) if word else ""
        request = build.FindCoordinatorRequest(key=key, key_type=1, coordinator_keys=(key,))
        self.ask(f"FindCoordinator {version} {word}", request)

    # Topics.

    def create(self, word: str, partitions: int = 2) -> None:
        build = self.build(19, 7)
        topic = build.CreatableTopic(
            name=self.name(word),
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=(),
        )
        request = build.CreateTopicsRequest(topics=(topic,), timeout=10_000)
        created = self.ask("create", request, is_recorded=False)
        self._topic_ids[self.name(word)] = created.topics[0].topic_id
        # Named now, in the same order on both brokers.
        self._names.topic(created.topics[0].topic_id)
        for index in range(partitions):
            self.wait(f"{word}-{index} has a leader", partial(self._is_led, word, index))
        # Kafka tells the coordinators of it a moment after those who lead it: a group that does
        # not know the topic yet has an epoch more in the end.
        time.sleep(5 * PAUSE_SECONDS)

    def _by_topic(
        self, topic_partitions: Sequence[tuple[str, int]]
    ) -> list[tuple[str, tuple[int, ...]]]:
        topics: dict[str, tuple[int, ...]] = {}
        for topic, index in topic_partitions:
            topics[self.name(topic)] = (*topics.get(self.name(topic), ()), index)
        return list(topics.items())

    def id_of(self, word: str) -> UUID:
        """Newer versions name topics by id; one that no topic has, for an unknown topic."""
        return self._topic_ids.get(self.name(word), UNKNOWN_TOPIC)

    def _is_led(self, word: str, index: int) -> bool:
        build = self.build(2, 4)
        partition = build.ListOffsetsPartition(partition_index=index, timestamp=-1)
        topic = build.ListOffsetsTopic(name=self.name(word), partitions=(partition,))
        request = build.ListOffsetsRequest(replica_id=-1, topics=(topic,))
        return _codes(self.ask("leader", request, is_recorded=False)) == {ErrorCode.none}

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Raises NotInTimeError."""
        until = time.monotonic() + WAIT_SECONDS
        while not is_so():
            if time.monotonic() > until:
                raise NotInTimeError(f"it is not so that {what}")
            time.sleep(PAUSE_SECONDS)

    def delete(self, word: str) -> None:
        build = self.build(20, 5)
        request = build.DeleteTopicsRequest(topic_names=(self.name(word),), timeout=10_000)
        self.ask("delete", request, is_recorded=False)

    # The coordinator.

    def init(
        self,
        word: str | None,
        version: int = 5,
        producer: ProducerEpoch = NOBODY,
        timeout_ms: int = TIMEOUT_MS,
    ) -> ProducerEpoch:
        build = self.build(22, version)
        request = build.InitProducerIdRequest(
            transactional_id=word and self.name(word),
            transaction_timeout=timeout_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )
        answer = self.ask(f"InitProducerId {version} {word}", request)
        return NOBODY if answer is None else _producer(answer)

    def add(
        self,
        word: str,
        producer: ProducerEpoch,
        topic_partitions: Sequence[tuple[str, int]],
        version: int = 3,
    ) -> None:
        build = self.build(24, version)
        topics = tuple(
            build.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in self._by_topic(topic_partitions)
        )
        request = build.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name(word),
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        self.ask(f"AddPartitionsToTxn {version} {word}", request)

    def add_as_broker(
        self,
        word: str,
        producer: ProducerEpoch,
        topic_partitions: Sequence[tuple[str, int]],
        version: int = 5,
        *,
        verify_only: bool,
    ) -> None:
        build = self.build(24, version)
        transaction = build.AddPartitionsToTxnTransaction(
            transactional_id=self.name(word),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=tuple(
                build.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in self._by_topic(topic_partitions)
            ),
        )
        request = build.AddPartitionsToTxnRequest(transactions=(transaction,))
        what = "verifies" if verify_only else "adds"
        self.ask(f"AddPartitionsToTxn {version} {what} {word}", request, as_broker=True)

    def add_offsets(self, word: str, producer: ProducerEpoch, group: str, version: int = 4) -> None:
        request = self.build(25, version).AddOffsetsToTxnRequest(
            transactional_id=self.name(word),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=self.name(group) if group else "",
        )
        self.ask(f"AddOffsetsToTxn {version} {word}", request)

    def end(
        self, word: str, producer: ProducerEpoch, version: int = 5, *, is_commit: bool = True
    ) -> ProducerEpoch:
        """Returns the producer from now on, once the markers are written."""
        request = self.build(26, version).EndTxnRequest(
            transactional_id=self.name(word),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=is_commit,
        )
        start = LATE_END if self._is_late(word, producer, version) else f"EndTxn {version} "
        answer = self.ask(f"{start}{'commits' if is_commit else 'aborts'} {word}", request)
        if answer is None:
            return NOBODY
        if answer.error_code == 0 and start != LATE_END:
            self._end_versions[word] = version
        is_new = version >= 5 and answer.error_code == 0
        self.settled(word)
        return _producer(answer) if is_new else producer

    def settled(self, word: str) -> None:
        """Wait until the transaction's markers are written. Raises NotInTimeError."""
        self.wait(f"{word} is at rest", partial(self._is_at_rest, word))

    def _is_at_rest(self, word: str) -> bool:
        return not self._state_of(word).transaction_state.startswith("Prepare")

    def _state_of(self, word: str) -> Any:
        request = self.build(65, 0).DescribeTransactionsRequest(
            transactional_ids=(self.name(word),)
        )
        return self.ask("state", request, is_recorded=False).transaction_states[0]

    def _is_late(self, word: str, producer: ProducerEpoch, version: int) -> bool:
        """Whether an EndTxn 5 is of the epoch before that of a transaction which an EndTxn up to 4
        has completed."""
        if version < 5 or self._end_versions.get(word, 5) >= 5:
            return False
        state = self._state_of(word)
        return bool(
            state.transaction_state.startswith("Complete")
            and state.producer_id == producer.producer_id
            and state.producer_epoch == producer.epoch + 1
        )

    # Offsets.

    def commit_offset(
        self,
        word: str,
        producer: ProducerEpoch,
        group: str,
        topic: str,
        offset: int,
        version: int = 5,
        *,
        member: str = "",
        generation: int = -1,
    ) -> None:
        build = self.build(28, version)
        partition = build.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="m"
        )
        is_newer = version >= FIRST_WITH_TOPIC_IDS
        named = {"topic_id": self.id_of(topic)} if is_newer else {"name": self.name(topic)}
        field = "generation_id_or_member_epoch" if is_newer else "generation_id"
        request = build.TxnOffsetCommitRequest(
            transactional_id=self.name(word),
            group_id=self.name(group),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            member_id=member,
            topics=(build.TxnOffsetCommitRequestTopic(partitions=(partition,), **named),),
            **{field: generation},
        )
        self.ask(f"TxnOffsetCommit {version} {word} of {member!r} in {generation}", request)

    def offset(self, group: str, topic: str, *, require_stable: bool) -> None:
        build = self.build(9, 7)
        topics = (build.OffsetFetchRequestTopic(name=self.name(topic), partition_indexes=(0,)),)
        request = build.OffsetFetchRequest(
            group_id=self.name(group), topics=topics, require_stable=require_stable
        )
        self.ask(f"OffsetFetch {'stable' if require_stable else 'any'} {group}", request)

    # Records.

    def produce(
        self,
        word: str | None,
        producer: ProducerEpoch,
        topic_partition: tuple[str, int],
        values: Sequence[str],
        version: int = 12,
        *,
        sequence: int = 0,
        is_transactional: bool = True,
    ) -> None:
        build = self.build(0, version)
        topic, index = topic_partition
        now_ms = int(time.time() * 1000)
        batch = build_batch(
            [Record(0, now_ms, None, value.encode()) for value in values],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        data = build.PartitionProduceData(index=index, records=batch)
        request = build.ProduceRequest(
            transactional_id=word and self.name(word),
            acks=-1,
            timeout=10_000,
            topic_data=(
                build.TopicProduceData(
                    name=self.name(topic), topic_id=self.id_of(topic), partition_data=(data,)
                ),
            ),
        )
        self.ask(f"Produce {version} {word} to {topic}-{index}", request)

    def fetch(self, topic_partition: tuple[str, int], offset: int = 0, version: int = 12) -> None:
        """Under both isolation levels."""
        topic, index = topic_partition
        build = self.build(1, version)
        for isolation in (0, 1):
            wanted = build.FetchPartition(
                partition=index,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                partition_max_bytes=MAX_BYTES,
            )
            request = build.FetchRequest(
                max_wait=0,
                min_bytes=0,
                max_bytes=MAX_BYTES,
                isolation_level=isolation,
                session_epoch=-1,
                topics=(
                    build.FetchTopic(
                        topic=self.name(topic), topic_id=self.id_of(topic), partitions=(wanted,)
                    ),
                ),
            )
            self.ask(f"Fetch {version} {topic}-{index} from {offset}, isolation {isolation}",
                     request)  # fmt: skip

    def list_offsets(self, topic_partition: tuple[str, int], version: int = 7) -> None:
        """Earliest and latest under both isolation levels."""
        topic, index = topic_partition
        build = self.build(2, version)
        for isolation in (0, 1):
            for at in (-1, -2):
                partition = build.ListOffsetsPartition(
                    partition_index=index, current_leader_epoch=-1, timestamp=at
                )
                request = build.ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=isolation,
                    topics=(
                        build.ListOffsetsTopic(name=self.name(topic), partitions=(partition,)),
                    ),
                )
                self.ask(f"ListOffsets {version} {topic}-{index} at {at}, isolation {isolation}",
                         request)  # fmt: skip

    def markers(
        self,
        producer: ProducerEpoch,
        topic_partitions: Sequence[tuple[str, int]],
        version: int = 2,
        *,
        is_commit: bool,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        build = self.build(27, version)
        marker = build.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=is_commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
            topics=tuple(
                build.WritableTxnMarkerTopic(name=self.name(topic), partition_indexes=(index,))
                for topic, index in topic_partitions
            ),
        )
        self.ask(f"WriteTxnMarkers {version}", build.WriteTxnMarkersRequest(markers=(marker,)))

    # Administration.

    def describe(self, *words: str) -> None:
        request = self.build(65, 0).DescribeTransactionsRequest(
            transactional_ids=tuple(map(self.name, words))
        )
        self.ask(f"DescribeTransactions {words}", request)

    def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producers: Sequence[int] = (),
        duration_ms: int = -1,
        version: int = 1,
    ) -> None:
        """Other scripts have transactions too: only those of this one are compared."""
        request = self.build(66, version).ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producers),
            duration_filter=duration_ms,
        )
        label = f"ListTransactions {version} {states} {bool(producers)} {duration_ms}"
        answer = self.ask(label, request, is_recorded=False)
        mine = [
            each
            for each in answer.transaction_states
            if each.transactional_id.startswith(self._prefix)
        ]
        self.record(label, [answer.error_code, answer.unknown_state_filters, mine])

    def describe_producers(self, *topic_partitions: tuple[str, int]) -> None:
        build = self.build(61, 0)
        request = build.DescribeProducersRequest(
            topics=tuple(
                build.TopicRequest(name=self.name(topic), partition_indexes=(index,))
                for topic, index in topic_partitions
            )
        )
        self.ask(f"DescribeProducers {topic_partitions}", request)

    def update_feature(
        self,
        feature: str,
        level: int,
        version: int = 1,
        *,
        upgrade_type: int = 1,
        validate_only: bool = False,
    ) -> None:
        build = self.build(57, version)
        update = build.FeatureUpdateKey(
            feature=feature,
            max_version_level=level,
            allow_downgrade=upgrade_type > 1,
            upgrade_type=upgrade_type,
        )
        request = build.UpdateFeaturesRequest(
            timeout=10_000, feature_updates=(update,), validate_only=validate_only
        )
        self.ask(f"UpdateFeatures {version} {feature} {level} {upgrade_type}", request)

    def features(self, version: int = 4, *, level: int = 2) -> None:
        """What ApiVersions says of transaction.version, once the broker knows its level."""
        self.wait(f"transaction.version is {level}", partial(self._has_level, level))
        supported, finalized = self._features(version)
        self.record(f"ApiVersions {version}", [supported, finalized])

    def _has_level(self, level: int) -> bool:
        _, finalized = self._features(4)
        return [each.max_version_level for each in finalized] == [level] * (level > 0)

    def _features(self, version: int) -> tuple[list[Any], list[Any]]:
        request = self.build(18, version).ApiVersionsRequest(
            client_software_name="differential", client_software_version="1"
        )
        answer = self.ask("ApiVersions", request, is_recorded=False)
        name = "transaction.version"
        return (
            [each for each in answer.supported_features if each.name == name],
            [each for each in answer.finalized_features if each.name == name],
        )

    def broker_meant(self) -> None:
        """ApiVersions 5 (KIP-1242) to this broker, and to others. The list itself is not compared
        here.
        """
        asked = self.build(60, 1).DescribeClusterRequest(endpoint_type=1)
        found = self.ask("DescribeCluster", asked, is_recorded=False)
        mine, node = found.cluster_id, found.brokers[0].broker_id
        for cluster, broker, meant in (
            (mine, node, "this one"),
            (None, -1, "any"),
            (mine, node + 1, "another broker"),
            ("other", node, "another cluster"),
            ("", node, "a cluster without a name"),
            (mine, -2, "a broker that cannot be"),
            (mine, -1, "any broker of the cluster"),
            (None, node, "this id in any cluster"),
        ):
            for name in ("differential", ""):
                request = self.build(18, 5).ApiVersionsRequest(
                    client_software_name=name,
                    client_software_version="1",
                    cluster_id=cluster,
                    node_id=broker,
                )
                label = f"ApiVersions 5 of {name!r}, meant is {meant}"
                answer = self.ask(label, request, is_recorded=False)
                self.record(label, [ErrorCode(answer.error_code).name, bool(answer.api_keys)])

    def versions(self, keys: Sequence[int]) -> None:
        """The versions of these requests."""
        request = self.build(18, 4).ApiVersionsRequest(
            client_software_name="differential", client_software_version="1"
        )
        answer = self.ask("ApiVersions", request, is_recorded=False)
        known = {each.api_key: each for each in answer.api_keys}
        for key in keys:
            self.record(f"versions of {key}", known.get(key))


def _producer(answer: Any) -> ProducerEpoch:
    return ProducerEpoch(int(answer.producer_id), int(answer.producer_epoch))


def _codes(message: Any) -> set[ErrorCode]:
    """All error codes in a response."""
    found: set[ErrorCode] = set()
    waiting = [message]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                if name.endswith("error_code"):
                    found.add(ErrorCode(getattr(value, name)))
                elif not name.startswith("__"):
                    waiting.append(getattr(value, name))
    return found


def _without(value: Any, prefix: str) -> Any:
    if isinstance(value, str):
        return value.removeprefix(prefix)
    if isinstance(value, list):
        return [_without(each, prefix) for each in value]
    if isinstance(value, dict):
        return {name: _without(each, prefix) for name, each in value.items()}
    return value
