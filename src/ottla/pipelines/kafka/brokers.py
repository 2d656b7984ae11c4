"""Look-ups on the brokers before Spark reads: Spark itself waits for minutes and says little."""

from __future__ import annotations

import difflib
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.committed import metadata_of
from ottla.pipelines.kafka.settings import ISOLATION, READ_COMMITTED, READ_UNCOMMITTED

if TYPE_CHECKING:
    from datetime import datetime

    from ottla.pipelines.kafka.settings import KafkaSettings

TIMEOUT_S: Final = 10.0
# One attempt is short, so that an error which the client reports meanwhile ends the wait.
_ATTEMPT_S: Final = 0.5
_MAX_ERRORS: Final = 100
_FORGOTTEN_WAIT_S: Final = 0.1
# librdkafka asks again for commits that a transaction may change: soon, as most end at once.
_RETRIES: Final = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 100}

_Answer = TypeVar("_Answer")
Records: TypeAlias = dict[str, dict[int, tuple[int, int]]]
"""Offset and timestamp in ms of one record, by topic and partition."""


NO_ID: Final = "A" * 22
"""The id of a topic whose brokers give topics none: Apache Kafka before 2.8 (KIP-516), and some
others that speak its protocol."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic's id and, for each partition, its first offset and the one after the last record that
    can be read.

    Under read_committed an open transaction keeps `latest` below the high watermark; None where
    both are the same.
    """

    name: str
    topic_id: str
    earliest: dict[int, int]
    latest: dict[int, int]
    high_watermarks: dict[int, int] | None = None

    @property
    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition, whether it can be read yet or not."""
        return self.latest if self.high_watermarks is None else self.high_watermarks

    def notices(self) -> list[str]:
        """Return what is not noticed of this topic, a line each."""
        if self.topic_id != NO_ID:
            return []
        return [
            f"The brokers of topic {self.name!r} give topics no ids: if it is deleted and created "
            "again, that is noticed only while the new one has fewer records than the former one "
            "had. Give a topic that is made again another name"
        ]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The id of a cluster and the topics asked for, by name."""

    cluster_id: str
    topics: dict[str, TopicState]


def look_up(kafka: KafkaSettings, names: Iterable[str]) -> ClusterState:
    """Return the cluster's id and the state of each topic.

    Raises PipelineError, within seconds, when no broker answers, when the brokers refuse the
    client, and when a topic does not exist.
    """
    wanted = sorted(set(names))
    brokers = Brokers(kafka)
    metadata = brokers.metadata()
    partitions = {name: _partitions(kafka, metadata.topics, name) for name in wanted}
    ids = brokers.topic_ids(wanted)
    # The high watermark last: it is never below the offset up to which records can be read.
    earliest, latest, ends = (
        brokers.offsets(partitions, spec) for spec in ("earliest", "latest", "end")
    )
    topics = {
        name: TopicState(name, ids[name], earliest[name], latest[name], ends[name])
        for name in wanted
    }
    return ClusterState(str(metadata.cluster_id), topics)


def offsets_at(kafka: KafkaSettings, name: str, when: datetime) -> dict[int, int]:
    """Return for each partition the first offset whose timestamp is `when` or later.

    A partition without such a record gets the offset after its last record. Raises PipelineError
    as `look_up` does.
    """
    brokers = Brokers(kafka)
    partitions = {name: _partitions(kafka, brokers.metadata().topics, name)}
    # The end first: a record that arrives between the two requests is then not skipped.
    latest = brokers.offsets(partitions, "latest")[name]
    found = brokers.offsets(partitions, int(when.timestamp() * 1_000))[name]
    return {number: latest[number] if at < 0 else at for number, at in found.items()}


def _partitions(kafka: KafkaSettings, topics: Mapping[str, Any], name: str) -> list[int]:
    if name in topics:
        return sorted(topics[name].partitions)
    near = difflib.get_close_matches(name, topics, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"type: ottla topic create {name}"
    raise PipelineError(f"There is no topic {name!r} on {kafka.bootstrap_servers}: {hint}")


class _ForgottenError(PipelineError):
    """librdkafka forgot the broker of a request, or that was not the group's coordinator."""


class Brokers:
    """The brokers of one cluster: an AdminClient whose requests end after TIMEOUT_S.

    Each method raises PipelineError, with one line, when the brokers do not answer or refuse.

    After a request that was not answered in time the next one gets a new client. librdkafka 2.16
    ends the whole process (an assertion in rdkafka_queue.h), or never answers again, where a
    request to a group's coordinator timed out and the coordinator then comes back.

    A request is made again where librdkafka forgot its broker meanwhile: it does that with a broker
    that the metadata does not have, such as one that has just been killed or started. So is one for
    a group's commits whose coordinator has moved.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        from confluent_kafka import KafkaException

        self._servers = kafka.bootstrap_servers
        self._reads_committed = kafka.isolation == READ_COMMITTED
        self._errors: deque[Any] = deque(maxlen=_MAX_ERRORS)
        own = {"log_level": "0", "error_cb": self._errors.append}
        self._settings: dict[str, Any] = {**kafka.for_librdkafka(), **own}
        try:
            self._admin = self._new_admin()
        except KafkaException as error:
            raise PipelineError(f"kafka= is refused: {_one_line(error.args[0])}") from error

    def _new_admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._settings)

    def metadata(self) -> Any:
        """Return the metadata of the cluster and of all topics."""
        from confluent_kafka import KafkaException

        self._errors.clear()
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return self._admin.list_topics(timeout=_ATTEMPT_S)
            except KafkaException as error:
                self._admin.poll(0)
                self._raise_refusal()
                if time.monotonic() > until:
                    raise PipelineError(
                        f"No broker answers at {self._servers} within {TIMEOUT_S:.0f} s"
                        f"{self._last_error()}. Is one running? Type: ottla serve"
                    ) from error

    def _raise_refusal(self) -> None:
        """Raise PipelineError when the client reported an error that no wait mends."""
        from confluent_kafka import KafkaError

        for error in self._errors:
            if error.code() == KafkaError._AUTHENTICATION:
                raise PipelineError(
                    f"The brokers at {self._servers} refuse the login: {_one_line(error)}. Check "
                    "sasl.mechanism, sasl.username and sasl.password in kafka="
                )
            if error.code() == KafkaError._SSL:
                raise PipelineError(
                    f"No TLS connection to {self._servers}: {_one_line(error)}. Check "
                    "security.protocol and the ssl.* settings in kafka="
                )

    def _last_error(self) -> str:
        from confluent_kafka import KafkaError

        down = (KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
        texts = [_one_line(error) for error in self._errors if error.code() not in down]
        return f" ({texts[-1]})" if texts and "Connection refused" not in texts[-1] else ""

    def topic_ids(self, names: list[str]) -> dict[str, str]:
        """Return the id of each topic, in base64 as Kafka's tools print it.

        Raises PipelineError also for a topic that does not exist.
        """
        from confluent_kafka import TopicCollection

        if not names:
            return {}

        def ask() -> dict[str, str]:
            wanted = TopicCollection(names)
            futures = self._admin.describe_topics(wanted, request_timeout=TIMEOUT_S)
            return {name: str(self._result(future).topic_id) for name, future in futures.items()}

        return self._answer(ask)

    def offsets(
        self, partitions: Mapping[str, list[int]], spec: str | int
    ) -> dict[str, dict[int, int]]:
        """Return an offset for each partition: "earliest", "latest", "end" or at a time in ms.

        "latest" is the one after the last record that these settings can read, "end" the high
        watermark.
        """
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        if isinstance(spec, int):
            wanted = OffsetSpec.for_timestamp(spec)
        else:
            wanted = OffsetSpec.earliest() if spec == "earliest" else OffsetSpec.latest()
        isolation = IsolationLevel.READ_UNCOMMITTED
        if self._reads_committed and spec != "end":
            isolation = IsolationLevel.READ_COMMITTED
        asked = {
            TopicPartition(name, number): wanted
            for name, numbers in partitions.items()
            for number in numbers
        }

        def ask() -> dict[str, dict[int, int]]:
            found: dict[str, dict[int, int]] = {name: {} for name in partitions}
            futures = self._admin.list_offsets(
                asked, isolation_level=isolation, request_timeout=TIMEOUT_S
            )
            for topic_partition, future in futures.items():
                offset = int(self._result(future).offset)
                found[topic_partition.topic][topic_partition.partition] = offset
            return found

        return self._answer(ask) if asked else {name: {} for name in partitions}

    def newest(self, partitions: Mapping[str, Iterable[int]]) -> Records:
        """Return the first record with the newest timestamp of each partition that has one.

        Raises PipelineError also for brokers without KIP-734 (Apache Kafka before 3.0).
        """
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        every = ((name, number) for name, numbers in partitions.items() for number in numbers)
        found = self._listed({TopicPartition(*one): OffsetSpec.max_timestamp() for one in every})
        times: dict[str, dict[int, int]] = {}
        for (name, number), (_, timestamp) in found.items():
            times.setdefault(name, {})[number] = timestamp
        return self.first_since(times)

    def first_since(self, times: Mapping[str, Mapping[int, int]]) -> Records:
        """Return of each partition the first record of a time in ms or later, where there is one.

        The brokers look in their logs: nothing is read but offset and timestamp.
        """
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        asked = {
            TopicPartition(name, number): OffsetSpec.for_timestamp(time_ms)
            for name, of in times.items()
            for number, time_ms in of.items()
        }
        records: Records = {}
        for (name, number), found in self._listed(asked).items():
            records.setdefault(name, {})[number] = found
        return records

    def _listed(self, asked: Mapping[Any, Any]) -> dict[tuple[str, int], tuple[int, int]]:
        """Return offset and timestamp of what is asked of each partition, where it has such one."""

        def ask() -> dict[tuple[str, int], tuple[int, int]]:
            futures = self._admin.list_offsets(dict(asked), request_timeout=TIMEOUT_S)
            found = {
                (one.topic, one.partition): self._result(future) for one, future in futures.items()
            }
            return {
                one: (int(result.offset), int(result.timestamp))
                for one, result in found.items()
                if result.offset >= 0 and result.timestamp >= 0
            }

        return self._answer(ask) if asked else {}

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> list[str]:
        """Return the metadata of a group's commits for these partitions, those that there are;
        what follows the text of each means nothing (see `kafka.committed`).
        """
        found = self._commits(group, topic, partitions, stable=False)
        return [text for one in found if one.error is None and (text := metadata_of(one))]

    def settled(self, group: str, topic: str, partitions: Iterable[int]) -> list[str]:
        """Return the same once no transaction is open that commits for this group (KIP-447).

        Raises PipelineError also where one partition is refused, or a transaction stays open.
        """
        found = self._commits(group, topic, partitions, stable=True)
        errors = [one.error for one in found if one.error is not None]
        if errors:
            raise PipelineError(f"The commits of {group} cannot be read: {errors[0].str()}")
        return [text for one in found if (text := metadata_of(one))]

    def _commits(
        self, group: str, topic: str, partitions: Iterable[int], *, stable: bool
    ) -> list[Any]:
        """Read a group's commits with a consumer that subscribes to nothing.

        An AdminClient has the same request, but ends the whole process with a segmentation fault
        where the coordinator answers that it is none: while it loads, and after it has moved
        (librdkafka's issue 5040).
        """
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

        isolation = READ_COMMITTED if stable else READ_UNCOMMITTED
        own = {"group.id": group, "enable.auto.commit": False, ISOLATION: isolation}
        consumer = Consumer({**self._settings, **own, **_RETRIES})
        wanted = [TopicPartition(topic, number) for number in partitions]
        passing = (
            KafkaError.NOT_COORDINATOR,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError._DESTROY_BROKER,
        )

        def ask() -> list[Any]:
            try:
                return list(consumer.committed(wanted, timeout=TIMEOUT_S))
            except KafkaException as error:
                code, words = error.args[0].code(), _one_line(error.args[0])
                if stable and code == KafkaError._TIMED_OUT:
                    words += "; or a transaction of the group stays open"
                kind = _ForgottenError if code in passing else PipelineError
                raise kind(f"The brokers at {self._servers} refuse the look-up: {words}") from error

        try:
            return self._answer(ask)
        finally:
            consumer.close()

    def setting(self, name: str) -> str | None:
        """Return a setting of one broker, None where this user may not read it."""
        from confluent_kafka.admin import ConfigResource

        broker = str(min(self.metadata().brokers))
        return self._settings_of(ConfigResource(ConfigResource.Type.BROKER, broker)).get(name)

    def topic_settings(self, topic: str) -> dict[str, str]:
        """Return the settings of a topic, none where this user may not read them."""
        from confluent_kafka.admin import ConfigResource

        return self._settings_of(ConfigResource(ConfigResource.Type.TOPIC, topic))

    def _settings_of(self, resource: Any) -> dict[str, str]:
        def ask() -> dict[str, str]:
            (future,) = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
            try:
                entries = self._result(future)
            except PipelineError as error:
                if _is_denied(error.__cause__):
                    return {}
                raise
            return {name: str(one.value) for name, one in entries.items() if one.value is not None}

        return self._answer(ask)

    def _answer(self, ask: Callable[[], _Answer]) -> _Answer:
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return ask()
            except _ForgottenError as error:
                if time.monotonic() > until:
                    raise PipelineError(str(error)) from error
            time.sleep(_FORGOTTEN_WAIT_S)

    def _result(self, future: Any) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return future.result(timeout=2 * TIMEOUT_S)
        except TimeoutError:
            # As where librdkafka ends the request itself, which a running query outlives.
            self._admin = self._new_admin()
            timed_out: Any = KafkaError
            reason = KafkaException(timed_out(KafkaError._TIMED_OUT))
            raise PipelineError(f"{self._servers} does not answer") from reason
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:
                self._admin = self._new_admin()
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise PipelineError(
                    f"A topic of the query is no longer on {self._servers}: it was deleted"
                ) from error
            is_forgotten = error.args[0].code() == KafkaError._DESTROY_BROKER
            kind = _ForgottenError if is_forgotten else PipelineError
            raise kind(
                f"The brokers at {self._servers} refuse the look-up: {_one_line(error.args[0])}"
            ) from error


def _is_denied(error: BaseException | None) -> bool:
    """Tell whether DESCRIBE_CONFIGS of the cluster, or of a topic, is not allowed."""
    from confluent_kafka import KafkaError, KafkaException

    denied = KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED
    return isinstance(error, KafkaException) and error.args[0].code() in denied


def _one_line(error: Any) -> str:
    """Return the words of a KafkaError without the thread and the times that librdkafka adds."""
    words = " ".join(str(error.str()).split())
    words = re.sub(r"^(\S+://)?\S+:\d+/\S+: ", "", words)
    return re.sub(r" \((after \d+ms in state|install the).*", "", words).rstrip(".: ")


def why_silent(topics: Iterable[tuple[KafkaSettings, str]]) -> str | None:
    """Return why a topic cannot be read or written now, None when all can."""
    try:
        for kafka, name in topics:
            look_up(kafka, [name])
    except PipelineError as error:
        return str(error)
    return None
