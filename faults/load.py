"""The clients of a run: producers at a limited rate and a consumer group, all recorded.

Each client is a thread, because librdkafka works without Python's lock. Producers choose the
partition themselves, so that a history does not depend on a partitioner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from faults.anomaly import Policy
from faults.history import (
    Acknowledged,
    Assigned,
    ClientError,
    Committed,
    FinalCommitted,
    FinalRead,
    Polled,
    Recorder,
    Refused,
    Revoked,
    Sent,
    Unknown,
    value_of,
)

GROUP: Final = "faults"
TICK_S: Final = 0.02
MAX_IN_FLIGHT: Final = 5_000
"""Records that a producer buffers while no broker responds; then it waits."""
COMMIT_EVERY_S: Final = 0.3
POLLS_A_ROUND: Final = 200
CALL_WITHIN_S: Final = 20.0
NEVER_WRITTEN: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Only these errors are conclusive. NOT_ENOUGH_REPLICAS is not: an earlier attempt may have been
written and its response lost."""

T = TypeVar("T")


class LoadError(Exception):
    """The clients did not finish in time."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of all producers together. Each stops after `max_records` records."""

    producers: int = 2
    consumers: int = 2
    records_per_s: int = 400
    max_records: int = 200_000


class Load:
    """`start` starts the clients; `stop` waits for outstanding responses; then `read_all` reads the
    topic back.

    `bootstrap` names several brokers, because any of them may be down.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        recorder: Recorder,
        policy: Policy,
        rate: Rate | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.recorder = recorder
        self.policy = policy
        self.rate = rate or Rate()
        self._died: set[str] = set()
        """Clients with a fatal error, which are unusable."""
        self._producers_stop = threading.Event()
        self._consumers_stop = threading.Event()
        self._producers = [
            threading.Thread(target=self._produce, args=(number,), name=f"producer-{number}")
            for number in range(self.rate.producers)
        ]
        self._consumers = [
            threading.Thread(target=self._consume, args=(number,), name=f"consumer-{number}")
            for number in range(self.rate.consumers)
        ]

    def start(self) -> None:
        for thread in (*self._producers, *self._consumers):
            thread.daemon = True
            thread.start()

    def stop(self, timeout_s: float = 60.0) -> None:
        """Stop the producers, then the consumers. Raises LoadError if one does not stop in time."""
        for stop, threads in (
            (self._producers_stop, self._producers),
            (self._consumers_stop, self._consumers),
        ):
            stop.set()
            until = time.monotonic() + timeout_s
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))
                if thread.is_alive():
                    raise LoadError(f"{thread.name} did not end within {timeout_s:g} s")

    def _produce(self, number: int) -> None:
        producer = self._new_producer(number)
        share = self.rate.records_per_s / self.rate.producers
        began = time.monotonic()
        sequence = 0
        while not self._producers_stop.is_set() and sequence < self.rate.max_records:
            due = int((time.monotonic() - began) * share)
            if len(producer) > MAX_IN_FLIGHT:
                # After a pause do not catch up with a burst.
                began = time.monotonic() - sequence / share
                due = sequence
            try:
                for this in range(sequence, due):
                    sequence = this + 1  # also if a dead producer rejects the record
                    self._send(producer, value_of(number, this), this % self.partitions)
                producer.poll(TICK_S)
            except KafkaException as fault:
                # A fatal error, such as out of sequence after an unclean election, has no callback.
                self._died.add(f"producer-{number}")
                text = str(fault.args[0].name())
                now_ms = self.recorder.now_ms()
                self.recorder.record(ClientError(now_ms, f"producer-{number}", text, True))
            if f"producer-{number}" in self._died:
                self._died.discard(f"producer-{number}")
                producer.purge()
                _flush(producer)
                producer = self._new_producer(number)
        _flush(producer)

    def _new_producer(self, number: int) -> Producer:
        given: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": f"producer-{number}",
            "log_level": 2,
            "linger.ms": 5,
            "message.timeout.ms": 120_000,
            "retry.backoff.ms": 50,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": self.errors_of(f"producer-{number}"),
        }
        if self.policy is Policy.acks_1:
            # One request at a time: without idempotence, several could be reordered.
            given |= {"acks": 1, "max.in.flight.requests.per.connection": 1}
        else:
            given |= {"acks": "all", "enable.idempotence": True}
        return Producer(given)

    def _send(self, producer: Producer, value: str, partition: int) -> None:
        self.recorder.record(Sent(self.recorder.now_ms(), value, partition))
        producer.produce(
            self.topic,
            value.encode(),
            partition=partition,
            on_delivery=lambda error, message: self._delivered(value, partition, error, message),
        )

    def _delivered(
        self, value: str, partition: int, error: KafkaError | None, message: Message
    ) -> None:
        now_ms = self.recorder.now_ms()
        if error is None:
            offset = message.offset()
            known = -1 if offset is None or offset < 0 else offset
            self.recorder.record(Acknowledged(now_ms, value, partition, known))
        elif error.code() in NEVER_WRITTEN:
            self.recorder.record(Refused(now_ms, value, partition, str(error.name())))
        else:
            self.recorder.record(Unknown(now_ms, value, partition, str(error.name())))

    def errors_of(self, client: str) -> Callable[[KafkaError], None]:
        """A client's error callback, which records the errors."""

        def on_error(error: KafkaError) -> None:
            fatal = bool(error.fatal())
            if fatal:
                self._died.add(client)
            # Lost connections are expected here, and clients report them all the time.
            if fatal or error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                text = f"{error.name()}: {error.str()}"
                self.recorder.record(ClientError(self.recorder.now_ms(), client, text, fatal))

        return on_error

    def _consume(self, number: int) -> None:
        GroupMember(self, number).run(self._consumers_stop)

    def read_all(self, timeout_s: float = 60.0) -> None:
        """Record the whole topic and the group's committed offsets. Raises LoadError."""
        until = time.monotonic() + timeout_s
        reader = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "client.id": "final-reader",
            }
        )
        try:
            for partition in range(self.partitions):
                self._read_partition(reader, partition, until)
            places = [TopicPartition(self.topic, each) for each in range(self.partitions)]
            found = _retried(lambda: reader.committed(places, timeout=CALL_WITHIN_S), until)
            offsets = tuple((each.partition, max(each.offset, -1)) for each in found)
            self.recorder.record(FinalCommitted(self.recorder.now_ms(), offsets))
        except KafkaException as fault:
            raise LoadError(f"the final read: {fault}") from fault
        finally:
            reader.close()

    def _read_partition(self, reader: Consumer, partition: int, until: float) -> None:
        place = TopicPartition(self.topic, partition)
        start, end = _watermarks(reader, place, until)
        records: list[tuple[int, str]] = []
        reader.assign([TopicPartition(self.topic, partition, start)])
        while (records[-1][0] + 1 if records else start) < end:
            if time.monotonic() > until:
                raise LoadError(f"the final read of {self.topic}-{partition} took too long")
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                records.append((message.offset(), message.value().decode()))
        now_ms = self.recorder.now_ms()
        self.recorder.record(FinalRead(now_ms, partition, start, end, tuple(records)))


class GroupMember:
    """One consumer of the group. Its polls are recorded before its assignment changes."""

    def __init__(self, load: Load, number: int) -> None:
        self.load = load
        self.number = number
        self._runs: dict[int, list[tuple[int, str]]] = {}
        self._positions: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": load.bootstrap,
                "group.id": GROUP,
                "client.id": f"consumer-{number}",
                "log_level": 2,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 1_000,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 1_000,
                "error_cb": load.errors_of(f"consumer-{number}"),
            }
        )

    def run(self, stop: threading.Event) -> None:
        self._consumer.subscribe(
            [self.load.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        due = time.monotonic() + COMMIT_EVERY_S
        while not stop.is_set():
            self._poll_round()
            if time.monotonic() > due:
                self._commit()
                due = time.monotonic() + COMMIT_EVERY_S
        self._commit()
        self._consumer.close()

    def _poll_round(self) -> None:
        for _ in range(POLLS_A_ROUND):
            message = self._consumer.poll(0.05)
            if message is None:
                break
            error = message.error()
            if error is not None:
                self._record_error(str(error.name()))
                break
            place = message.partition()
            self._runs.setdefault(place, []).append((message.offset(), message.value().decode()))
            self._positions[place] = message.offset() + 1
        self._record_polled()

    def _record_polled(self) -> None:
        for partition, records in self._runs.items():
            now_ms = self.load.recorder.now_ms()
            self.load.recorder.record(Polled(now_ms, self.number, partition, tuple(records)))
        self._runs.clear()

    def _commit(self) -> None:
        if not self._positions:
            return
        recorder = self.load.recorder
        offsets = tuple(self._positions.items())
        self._positions.clear()
        sent_ms = recorder.now_ms()
        error = None
        try:
            places = [TopicPartition(self.load.topic, *offset) for offset in offsets]
            answers = self._consumer.commit(offsets=places, asynchronous=False) or []
            failed = [each.error for each in answers if each.error is not None]
            error = str(failed[0].name()) if failed else None
        except KafkaException as fault:
            error = str(fault.args[0].name())
        recorder.record(Committed(recorder.now_ms(), sent_ms, self.number, offsets, error))

    def _on_assign(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        now_ms = self.load.recorder.now_ms()
        self.load.recorder.record(Assigned(now_ms, self.number, _indexes(places)))

    def _on_revoke(self, consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self._record_polled()
        self._commit()
        self._revoked(places)

    def _on_lost(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self._record_polled()
        self._positions.clear()
        self._revoked(places)

    def _revoked(self, places: Sequence[TopicPartition]) -> None:
        now_ms = self.load.recorder.now_ms()
        self.load.recorder.record(Revoked(now_ms, self.number, _indexes(places)))

    def _record_error(self, error: str) -> None:
        client = f"consumer-{self.number}"
        self.load.recorder.record(ClientError(self.load.recorder.now_ms(), client, error, False))


def _indexes(places: Sequence[TopicPartition]) -> tuple[int, ...]:
    return tuple(place.partition for place in places)


def _watermarks(reader: Consumer, place: TopicPartition, until: float) -> tuple[int, int]:
    """The start and end offsets of a partition."""
    found: tuple[int, int] = _retried(
        lambda: reader.get_watermark_offsets(place, timeout=CALL_WITHIN_S), until
    )
    return found


# A new leader waits for its followers (KIP-207), and leaders and coordinators move, for example
# back to the preferred one. librdkafka leaves the retry to its caller.
_ASKED_AGAIN: Final = (
    *("OFFSET_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"),
    *("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
)


def _retried(call: Callable[[], T], until: float) -> T:
    """Retry a call until it succeeds or the time is up. Raises KafkaException."""
    while True:
        try:
            return call()
        except KafkaException as fault:
            if fault.args[0].name() not in _ASKED_AGAIN or time.monotonic() > until:
                raise
            time.sleep(TICK_S)


def _flush(producer: Producer) -> None:
    try:
        producer.flush(CALL_WITHIN_S)
    except (KafkaException, SystemError):
        # The fatal error again, which is already recorded. confluent-kafka raises it in a call that
        # also returns, and Python turns that into SystemError. The outcome of the rest is unknown.
        return
