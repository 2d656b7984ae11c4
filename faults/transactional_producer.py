"""A producer with transactions over several partitions, some of which it aborts.

Each transaction also commits its number as the offset of partition 0 in a group of its
transactional id: offsets and records become visible together, or neither does. From time to time a
new instance takes the transactional id over while the former one has an open transaction, which it
then tries to commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from faults.clients import CALL_WITHIN_S, TICK_S, Clients, flush
from faults.history import Ended, Ending, Initialized, Sent, transaction_of, value_of

TIMEOUT_MS: Final = 10_000
MEAN_RECORDS: Final = 20
"""Of one transaction."""
ABORTED: Final = 0.2
"""The share of transactions that are aborted on purpose."""
TAKEN_OVER: Final = 0.05
"""The share of transactions at whose end a new instance takes over."""
ENDS_WITHIN_S: Final = 60.0


def id_of(number: int) -> str:
    """The transactional id of a producer, and the name of its group."""
    return f"faults-{number}"


class TransactionalProducer:
    """One transactional id with all its instances, one after the other."""

    def __init__(self, clients: Clients, number: int) -> None:
        self._clients = clients
        self._number = number
        self._random = Random(number)
        self._id = id_of(number)
        self._instance = 0
        self._transactions = 0
        self._sequence = 0
        reader = Consumer({**clients.connection, "group.id": self._id})
        self._group = reader.consumer_group_metadata()
        reader.close()

    def run(self, stop: threading.Event) -> None:
        """Returns soon after `stop` is set. After a fatal error the next instance takes over."""
        rate = self._clients.rate
        while not stop.is_set() and self._sequence < rate.max_records:
            producer = self._new()
            try:
                if not self._initialize(producer, stop):
                    return
                while not stop.is_set() and self._sequence < rate.max_records:
                    due = time.monotonic() + MEAN_RECORDS / rate.of_one_producer
                    producer = self._transact(producer, stop)
                    stop.wait(max(0.0, due - time.monotonic()))
            except KafkaException as fault:
                self._record_error(fault)
                producer.purge()
                flush(producer)
                stop.wait(TICK_S)

    def _new(self) -> Producer:
        self._instance += 1
        given = self._clients.settings(f"{self._id}.{self._instance}") | {
            "transactional.id": self._id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "linger.ms": 5,
            "retry.backoff.ms": 50,
            # If all brokers are away, librdkafka begins again with bootstrap.servers and drops the
            # brokers it knew. A transaction then waits for the group's former coordinator, to which
            # it sends nothing any more (confluentinc/librdkafka#5511).
            "metadata.recovery.strategy": "none",
        }
        return Producer(given)

    def _initialize(self, producer: Producer, stop: threading.Event) -> bool:
        """False if the run ends meanwhile. Raises KafkaException."""
        while not stop.is_set():
            try:
                producer.init_transactions(CALL_WITHIN_S)
            except KafkaException as fault:
                if not fault.args[0].retriable():
                    raise
                self._record_error(fault)
                continue
            recorder = self._clients.recorder
            recorder.record(Initialized(recorder.now_ms(), self._id, self._instance))
            return True
        return False

    def _transact(self, producer: Producer, stop: threading.Event) -> Producer:
        """One transaction; returns the producer of the next one. Raises KafkaException if the
        producer is unusable."""
        self._transactions += 1
        name = transaction_of(self._id, self._transactions)
        producer.begin_transaction()
        try:
            self._fill(producer, name)
        except KafkaException as fault:
            if fault.args[0].fatal():
                raise
            self._record_error(fault)
            self._end(producer, name, self._instance, is_commit=False)
            return producer
        if self._random.random() < TAKEN_OVER:
            return self._taken_over(producer, name, stop)
        self._end(producer, name, self._instance, is_commit=self._random.random() >= ABORTED)
        return producer

    def _fill(self, producer: Producer, name: str) -> None:
        recorder = self._clients.recorder
        for _ in range(self._random.randint(1, 2 * MEAN_RECORDS - 1)):
            value = value_of(self._number, self._sequence)
            self._sequence += 1
            partition = self._random.randrange(self._clients.partitions)
            recorder.record(Sent(recorder.now_ms(), value, partition, name))
            self._clients.produce(producer, value, partition)
        producer.poll(0)
        offset = TopicPartition(self._clients.topic, 0, self._transactions)
        _repeated(
            lambda: producer.send_offsets_to_transaction([offset], self._group, CALL_WITHIN_S)
        )

    def _end(self, producer: Producer, name: str, instance: int, *, is_commit: bool) -> None:
        """Raises KafkaException if the outcome is unknown."""
        recorder = self._clients.recorder
        recorder.record(Ending(recorder.now_ms(), name, instance, is_commit))
        call: Any = producer.commit_transaction if is_commit else producer.abort_transaction
        try:
            _repeated(lambda: call(CALL_WITHIN_S))
        except KafkaException as fault:
            if not is_commit or not fault.args[0].txn_requires_abort():
                raise
            self._record_error(fault)
            self._end(producer, name, instance, is_commit=False)
            return
        recorder.record(Ended(recorder.now_ms(), name, instance, is_commit))

    def _taken_over(self, former: Producer, name: str, stop: threading.Event) -> Producer:
        """The former producer tries to commit after the next one was initialized."""
        flush(former)
        instance = self._instance
        producer = self._new()
        if self._initialize(producer, stop):
            try:
                self._end(former, name, instance, is_commit=True)
            except KafkaException as fault:
                self._record_error(fault)
        former.purge()
        flush(former)
        return producer

    def _record_error(self, fault: KafkaException) -> None:
        error = fault.args[0]
        said = f"{error.name()}: {error.str()}"
        self._clients.record_error(self._id, said, is_fatal=bool(error.fatal()))


def _repeated(call: Callable[[], None]) -> None:
    """Raises KafkaException for an error that a repetition does not mend."""
    until = time.monotonic() + ENDS_WITHIN_S
    while True:
        try:
            return call()
        except KafkaException as fault:
            if not fault.args[0].retriable() or time.monotonic() > until:
                raise
