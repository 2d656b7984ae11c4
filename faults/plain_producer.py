"""A producer without transactions, at a limited rate. It chooses the partition itself, so that a
history does not depend on a partitioner."""

from __future__ import annotations

import threading
import time
from typing import Final

from confluent_kafka import KafkaException, Producer

from faults.anomaly import Policy
from faults.clients import TICK_S, Clients, flush
from faults.history import Sent, value_of

MAX_IN_FLIGHT: Final = 5_000
"""Records that a producer buffers while no broker responds; then it waits."""


class PlainProducer:
    """After a fatal error it goes on with a new client."""

    def __init__(self, clients: Clients, number: int, policy: Policy) -> None:
        self._clients = clients
        self._number = number
        self._policy = policy
        self._name = f"producer-{number}"

    def run(self, stop: threading.Event) -> None:
        clients, rate = self._clients, self._clients.rate
        producer = self._new()
        share = rate.of_one_producer
        began = time.monotonic()
        sequence = 0
        while not stop.is_set() and sequence < rate.max_records:
            due = int((time.monotonic() - began) * share)
            if len(producer) > MAX_IN_FLIGHT:
                # After a pause do not catch up with a burst.
                began = time.monotonic() - sequence / share
                due = sequence
            try:
                for this in range(sequence, due):
                    sequence = this + 1  # also if a dead producer rejects the record
                    self._send(producer, this)
                producer.poll(TICK_S)
            except KafkaException as fault:
                # A fatal error, such as out of sequence after an unclean election, has no callback.
                clients.died.add(self._name)
                clients.record_error(self._name, str(fault.args[0].name()), is_fatal=True)
            if self._name in clients.died:
                clients.died.discard(self._name)
                producer.purge()
                flush(producer)
                producer = self._new()
        flush(producer)

    def _new(self) -> Producer:
        given = self._clients.settings(self._name) | {
            "linger.ms": 5,
            "message.timeout.ms": 120_000,
            "retry.backoff.ms": 50,
        }
        if self._policy is Policy.acks_1:
            # One request at a time: without idempotence, several could be reordered.
            given |= {"acks": 1, "max.in.flight.requests.per.connection": 1}
        else:
            given |= {"acks": "all", "enable.idempotence": True}
        return Producer(given)

    def _send(self, producer: Producer, sequence: int) -> None:
        value, partition = value_of(self._number, sequence), sequence % self._clients.partitions
        recorder = self._clients.recorder
        recorder.record(Sent(recorder.now_ms(), value, partition))
        self._clients.produce(producer, value, partition)
