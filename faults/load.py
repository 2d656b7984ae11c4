"""The clients of a run: producers at a limited rate and a consumer group, all recorded.

Each client is a thread, because librdkafka works without Python's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from faults.anomaly import Policy
from faults.clients import CALL_WITHIN_S, TICK_S, Clients, LoadError, Rate, retried
from faults.group_member import GROUP, GroupMember
from faults.history import FinalCommitted, FinalOffset, FinalRead, Recorder
from faults.plain_producer import PlainProducer
from faults.transactional_producer import TransactionalProducer, id_of

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"


class Load:
    """`start` starts the clients; `stop` waits for outstanding responses; then `read_all` reads the
    topic back. With `transactions`, all producers are transactional.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        recorder: Recorder,
        policy: Policy,
        rate: Rate | None = None,
        *,
        transactions: bool = False,
        security: Mapping[str, str] | None = None,
        first_number: int = 0,
    ) -> None:
        """`first_number`: of the clients, for a second load with the same history."""
        rate = rate or Rate()
        self._clients = Clients(
            bootstrap, topic, partitions, recorder, rate, security=security or {}
        )
        self._transactions = transactions
        self._numbers = range(first_number, first_number + rate.producers)
        self._producers_stop = threading.Event()
        self._consumers_stop = threading.Event()
        self._producers = [
            threading.Thread(
                target=self._producer(number, policy).run,
                args=(self._producers_stop,),
                name=f"producer-{number}",
            )
            for number in self._numbers
        ]
        self._consumers = [
            threading.Thread(target=self._consume, args=(number,), name=f"consumer-{number}")
            for number in range(first_number, first_number + rate.consumers)
        ]

    def _producer(self, number: int, policy: Policy) -> PlainProducer | TransactionalProducer:
        if self._transactions:
            return TransactionalProducer(self._clients, number)
        return PlainProducer(self._clients, number, policy)

    def _consume(self, number: int) -> None:
        GroupMember(self._clients, number).run(self._consumers_stop)

    def last_lines(self) -> list[str]:
        """Of the group members' own logs: why they do not go on."""
        return [line for log in self._clients.logs for line in log.last_lines()]

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

    def read_all(self, timeout_s: float = 60.0) -> None:
        """Record the whole topic and the groups' committed offsets. Raises LoadError, also if a
        transaction stays open.
        """
        until = time.monotonic() + timeout_s
        recorder, clients = self._clients.recorder, self._clients
        reader = self._reader(GROUP, READ_COMMITTED)
        try:
            for partition in range(clients.partitions):
                self._wait_stable(partition, until)
                self._read_partition(reader, partition, until)
            topic_partitions = [
                TopicPartition(clients.topic, each) for each in range(clients.partitions)
            ]
            found = retried(
                lambda: reader.committed(topic_partitions, timeout=CALL_WITHIN_S), until
            )
            offsets = tuple((each.partition, max(each.offset, -1)) for each in found)
            recorder.record(FinalCommitted(recorder.now_ms(), offsets))
            if self._transactions:
                for number in self._numbers:
                    self._read_offset(id_of(number), until)
        except KafkaException as fault:
            raise LoadError(f"the final read: {fault}") from fault
        finally:
            reader.close()

    def _reader(self, group: str, isolation: str) -> Consumer:
        given = {
            **self._clients.connection,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long the end of a partition takes
            "isolation.level": isolation,
            "client.id": "final-reader",
        }
        return Consumer(given)

    def _wait_stable(self, partition: int, until: float) -> None:
        """Wait until no transaction is open in the partition. Raises LoadError."""
        topic_partition = TopicPartition(self._clients.topic, partition)
        readers = [self._reader(GROUP, each) for each in (READ_COMMITTED, READ_UNCOMMITTED)]
        try:
            while True:
                stable, end = (_watermarks(each, topic_partition, until)[1] for each in readers)
                if stable == end:
                    return
                if time.monotonic() > until:
                    what = f"a transaction is stuck in {self._clients.topic}-{partition}: the last"
                    raise LoadError(f"{what} stable offset is {stable}, the log's end {end}")
                time.sleep(TICK_S)
        finally:
            for each in readers:
                each.close()

    def _read_partition(self, reader: Consumer, partition: int, until: float) -> None:
        topic = self._clients.topic
        start, end = _watermarks(reader, TopicPartition(topic, partition), until)
        records: list[tuple[int, str]] = []
        reader.assign([TopicPartition(topic, partition, start)])
        # The last offsets may be those of markers and aborted records, which no reader gets.
        while True:
            if time.monotonic() > until:
                raise LoadError(f"the final read of {topic}-{partition} took too long")
            message = reader.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                records.append((message.offset(), message.value().decode()))
            elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                break
        recorder = self._clients.recorder
        recorder.record(FinalRead(recorder.now_ms(), partition, start, end, tuple(records)))

    def _read_offset(self, transactional_id: str, until: float) -> None:
        """What the transactions of an id committed as the offset of its group."""
        reader = self._reader(transactional_id, READ_COMMITTED)
        try:
            topic_partition = TopicPartition(self._clients.topic, 0)
            (found,) = retried(
                lambda: reader.committed([topic_partition], timeout=CALL_WITHIN_S), until
            )
            recorder = self._clients.recorder
            offset = max(found.offset, 0)
            recorder.record(FinalOffset(recorder.now_ms(), transactional_id, offset))
        finally:
            reader.close()


def _watermarks(reader: Consumer, topic_partition: TopicPartition, until: float) -> tuple[int, int]:
    """The start and end offsets of a partition; under read_committed, the end is the last stable
    offset."""

    def asked() -> Any:
        return reader.get_watermark_offsets(topic_partition, timeout=CALL_WITHIN_S, cached=False)

    start, end = retried(asked, until)
    return int(start), int(end)
