"""What the clients of a run share: the cluster, the topic, and how errors are recorded."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from faults.client_log import ClientLog
from faults.history import Acknowledged, ClientError, Recorder, Refused, Unknown

TICK_S: Final = 0.02
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

# A new leader waits for its followers (KIP-207), and leaders and coordinators move, for example
# back to the preferred one. librdkafka leaves the retry to its caller.
_ASKED_AGAIN: Final = (
    *("OFFSET_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"),
    *("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
)

# librdkafka logs what is in the history already, such as that an instance was fenced.
QUIET: Final = logging.getLogger("faults.clients")
QUIET.setLevel(logging.CRITICAL + 1)

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

    @property
    def of_one_producer(self) -> float:
        """Records per second."""
        return self.records_per_s / self.producers


@dataclass(frozen=True, slots=True)
class Clients:
    """`bootstrap` names several brokers, because any of them may be down."""

    bootstrap: str
    topic: str
    partitions: int
    recorder: Recorder
    rate: Rate
    died: set[str] = field(default_factory=set)
    """Clients with a fatal error, which are unusable."""
    logs: list[ClientLog] = field(default_factory=list)
    """Of those whose own log a failure shows."""
    security: Mapping[str, str] = field(default_factory=dict)
    """librdkafka's settings about security."""

    @property
    def connection(self) -> dict[str, Any]:
        """Where every client connects, and how."""
        return {"bootstrap.servers": self.bootstrap, **self.security}

    def settings(self, client: str) -> dict[str, Any]:
        """Those of every client of librdkafka."""
        return {
            **self.connection,
            "client.id": client,
            "logger": QUIET,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            # Once each broker was down at some time, librdkafka re-bootstraps, and 2.16 may come to
            # a deadlock: rd_kafka_toppar_handle_OffsetForLeaderEpoch waits for the client's lock
            # with the partition's, rd_kafka_broker_fail for the partition's with the client's.
            "metadata.recovery.strategy": "none",
            "error_cb": self._errors_of(client),
        }

    def _errors_of(self, client: str) -> Callable[[KafkaError], None]:
        def on_error(error: KafkaError) -> None:
            fatal = bool(error.fatal())
            if fatal:
                self.died.add(client)
            # Lost connections are expected here, and clients report them all the time.
            if fatal or error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                self.record_error(client, f"{error.name()}: {error.str()}", is_fatal=fatal)

        return on_error

    def record_error(self, client: str, error: str, *, is_fatal: bool) -> None:
        self.recorder.record(ClientError(self.recorder.now_ms(), client, error, is_fatal))

    def produce(self, producer: Producer, value: str, partition: int) -> None:
        """Hand a record to the producer; its outcome is recorded. Raises KafkaException."""
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


def retried(call: Callable[[], T], until: float) -> T:
    """Retry a call until it succeeds or the time is up. Raises KafkaException."""
    while True:
        try:
            return call()
        except KafkaException as fault:
            if fault.args[0].name() not in _ASKED_AGAIN or time.monotonic() > until:
                raise
            time.sleep(TICK_S)


def flush(producer: Producer) -> None:
    """Wait for the outcomes of a producer's records."""
    try:
        producer.flush(CALL_WITHIN_S)
    except (KafkaException, SystemError):
        # The fatal error again, which is already recorded. confluent-kafka raises it in a call that
        # also returns, and Python turns that into SystemError. The outcome of the rest is unknown.
        return
