"""What a test has written to a compacted topic of real brokers, so that the model's checker can
check what their journeys say of keys, transactions and the cleaner.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import Message, Producer
from tests.journey.model.stored import Kept, Transaction
from tests.journey.model.stored_statements import StoredChecked
from tests.system.cluster_load import WAIT_S, wait_for

from ottla.client.admin.asked_journeys import asked_journey
from ottla.client.admin.records import fetch_batches
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.records.control import ControlType
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.testing import Cluster

SEGMENT_BYTES: Final = 400
SETTINGS: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "internal.segment.bytes": str(SEGMENT_BYTES),
}


class KeptTopic:
    """The records of partition 0, whatever became of them; `present` are those that there are."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.records: list[Kept] = []
        self.open: dict[int, Transaction] = {}
        self.log = SimpleNamespace(start_offset=0)
        self.there: dict[int, Record] = {}

    # What is written.

    def append(self, *keys: tuple[bytes, bool]) -> None:
        """Each key, and whether the record is a tombstone."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap})
        for message in self._sent(producer, keys):
            self._wrote(message, None)

    def begin(self, *keys: tuple[bytes, bool]) -> tuple[Producer, Transaction]:
        """The same in a transaction, which is left open."""
        name = f"{self.topic}-{len(self.records)}"
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "transactional.id": name})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        transaction = Transaction(-1, len(self.records))
        for message in self._sent(producer, keys):
            self._wrote(message, transaction)
        self.read()
        self.open[transaction.producer_id] = transaction
        return producer, transaction

    def end(self, producer: Producer, transaction: Transaction, outcome: ControlType) -> None:
        if outcome is ControlType.commit:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
        transaction.outcome, transaction.marker = outcome, len(self.records)
        del self.open[transaction.producer_id]
        marker = Kept(transaction.marker, None, False, -1, transaction, is_control=True)
        self.records.append(marker)
        wait_for("the marker", lambda: transaction.marker in self.read())

    def _sent(self, producer: Producer, keys: tuple[tuple[bytes, bool], ...]) -> list[Message]:
        sent: list[Message] = []

        def delivered(error: Any, message: Message) -> None:
            assert error is None, error
            sent.append(message)

        for key, is_gone in keys:
            value = None if is_gone else b"v" * 60
            producer.produce(self.topic, value, key, partition=0, on_delivery=delivered)
            assert producer.flush(WAIT_S) == 0
        return sent

    def _wrote(self, message: Message, transaction: Transaction | None) -> None:
        assert message.offset() == len(self.records)
        _, at_ms = message.timestamp()
        is_gone = message.value() is None
        self.records.append(Kept(len(self.records), message.key(), is_gone, at_ms, transaction))

    # What is there: as the checker asks for it.

    @property
    def stable(self) -> int:
        return min((one.first_offset for one in self.open.values()), default=len(self.records))

    def present(self) -> dict[int, Record]:
        return self.there

    def read(self) -> dict[int, Record]:
        """Reads the partition as it is now, markers included."""
        partition, found = TopicPartition(self.topic, 0), {}
        leader = self.cluster.leader(self.topic)
        with Client(self.cluster.bootstrap) as client:
            offset = 0
            while data := fetch_batches(client, leader, partition, offset).data:
                at = 0
                for header in iterate_headers(data):
                    batch = memoryview(data)[at : at + header.size_bytes]
                    at += header.size_bytes
                    for record in iterate_records(batch, header):
                        found[record.offset] = record
                        of = self._transaction_of(record.offset)
                        if of is not None:
                            of.producer_id = header.producer_id
                    offset = header.next_offset
        return found

    def _transaction_of(self, offset: int) -> Transaction | None:
        return self.records[offset].transaction if offset < len(self.records) else None

    def check(self) -> dict[int, dict[str, Any]]:
        """Asks every running broker for each offset. Raises UntrueError. Returns the rules of
        compaction, by offset.
        """
        rules: dict[int, dict[str, Any]] = {}
        for offset in range(len(self.records) + 1):
            for document in wait_for("the cleaner to rest", lambda: self._told(offset)):  # noqa: B023
                self.judge(offset, document)
                for rule in (document["retention"] or {"rules": ()})["rules"]:
                    rules[offset] = rule
        return rules

    def _told(self, offset: int) -> list[dict[str, Any]] | None:
        """What the brokers say, if the cleaner did nothing meanwhile."""
        self.there = self.read()
        running = [one.bootstrap for one in self.cluster.brokers.values() if one.running]
        found = [self.told(offset, bootstrap) for bootstrap in running]
        return found if self.read() == self.there else None

    def told(self, offset: int, bootstrap: str | None = None) -> dict[str, Any]:
        """The journey, of one of the brokers."""
        question = {"journey": 1, "topic": self.topic, "partition": 0, "offset": offset}
        return asked_journey(bootstrap or self.cluster.bootstrap, question)

    def judge(self, offset: int, document: dict[str, Any]) -> None:
        """Raises UntrueError."""
        world: Any = self
        StoredChecked(world, offset, document).everything()
