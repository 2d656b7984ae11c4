"""A consumer of the run's group. It reads committed records only, as librdkafka does by default."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from faults.client_log import ClientLog
from faults.clients import Clients
from faults.history import Assigned, Committed, Polled, Revoked

GROUP: Final = "faults"
COMMIT_EVERY_S: Final = 0.3
POLLS_A_ROUND: Final = 200


class GroupMember:
    """One consumer of the group. Its polls are recorded before its assignment changes."""

    def __init__(self, clients: Clients, number: int) -> None:
        self._clients = clients
        self._recorder = clients.recorder
        self.number = number
        self._runs: dict[int, list[tuple[int, str, int]]] = {}
        self._positions: dict[int, int] = {}
        log = ClientLog(f"consumer-{number}")
        clients.logs.append(log)
        self._consumer = Consumer(
            clients.settings(f"consumer-{number}")
            | {
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 1_000,
                "debug": "cgrp",
                "logger": log.logger,
            }
        )

    def run(self, stop: threading.Event) -> None:
        self._consumer.subscribe(
            [self._clients.topic],
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
                self._clients.record_error(
                    f"consumer-{self.number}", str(error.name()), is_fatal=False
                )
                break
            partition = message.partition()
            record = message.offset(), message.value().decode()
            self._runs.setdefault(partition, []).append((*record, self._epoch_of(message)))
            self._positions[partition] = message.offset() + 1
        self._record_polled()

    @staticmethod
    def _epoch_of(message: Message) -> int:
        """The leader epoch in which a record was appended. Only that says which leader had it: on a
        busy machine it may have waited in librdkafka's queue until after the next election.
        """
        epoch = message.leader_epoch()
        return -1 if epoch is None else epoch

    def _record_polled(self) -> None:
        for partition, records in self._runs.items():
            now_ms = self._recorder.now_ms()
            run = tuple((offset, value) for offset, value, _ in records)
            epochs = tuple(epoch for _, _, epoch in records)
            self._recorder.record(Polled(now_ms, self.number, partition, run, epochs))
        self._runs.clear()

    def _commit(self) -> None:
        if not self._positions:
            return
        recorder = self._recorder
        offsets = tuple(self._positions.items())
        self._positions.clear()
        sent_ms = recorder.now_ms()
        error = None
        try:
            partitions = [TopicPartition(self._clients.topic, *offset) for offset in offsets]
            answers = self._consumer.commit(offsets=partitions, asynchronous=False) or []
            failed = [each.error for each in answers if each.error is not None]
            error = str(failed[0].name()) if failed else None
        except KafkaException as fault:
            error = str(fault.args[0].name())
        recorder.record(Committed(recorder.now_ms(), sent_ms, self.number, offsets, error))

    def _on_assign(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        now_ms = self._recorder.now_ms()
        self._recorder.record(Assigned(now_ms, self.number, _indexes(partitions)))

    def _on_revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._record_polled()
        self._commit()
        self._revoked(partitions)

    def _on_lost(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._record_polled()
        self._positions.clear()
        self._revoked(partitions)

    def _revoked(self, partitions: Sequence[TopicPartition]) -> None:
        now_ms = self._recorder.now_ms()
        self._recorder.record(Revoked(now_ms, self.number, _indexes(partitions)))


def _indexes(partitions: Sequence[TopicPartition]) -> tuple[int, ...]:
    return tuple(partition.partition for partition in partitions)
