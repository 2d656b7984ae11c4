"""A coordinator's memory is compared with what its log says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from simulation.replay import ReplayWatch, content
from simulation.violation import Violation

from ottla.coordinator.coordinator_log import LogMarker, LogRecord
from ottla.coordinator.group_coordinator import group_kind
from ottla.coordinator.transaction_coordinator import transaction_kind
from ottla.groups.settings import GroupSettings
from ottla.groups.stored import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from ottla.shards.step import ProducerEpoch, TransactionMarker
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.state import TransactionState
from ottla.transactions.stored import TopicPartition, TransactionRecord, TransactionValue

PRODUCER = ProducerEpoch(7, 0)
PLACES = frozenset({TopicPartition("w", 0), TopicPartition("w", 1)})
ONGOING = TransactionValue(
    producer_id=7,
    epoch=3,
    timeout_ms=1_000,
    state=TransactionState.ONGOING,
    partitions=PLACES,
    last_update_ms=5,
    start_ms=5,
    previous_producer_id=7,
    client_version=2,
    last_epoch=2,
)


class Coordinated:
    """One partition that a broker coordinates; `put` appends a record and applies it."""

    def __init__(self, kind: Any) -> None:
        self.records: list[LogRecord | LogMarker] = []
        log = SimpleNamespace(end_offset=0)
        self._partition = SimpleNamespace(log=log, leader_epoch=4)
        self.name, self.epoch, self.is_active = "state-0", 4, True
        self.is_sharing = False
        self._kind, self.shard = kind, kind.new_shard()
        self._log: Any = self
        runtime = SimpleNamespace(_partitions={0: self})
        coordinators = SimpleNamespace(_runtimes={"state": runtime})
        self.node = SimpleNamespace(coordinators=coordinators)
        self.watch = ReplayWatch([SimpleNamespace(name="broker 1", node=self.node)])  # type: ignore[list-item]
        self.reads = 0

    def read_all(self) -> list[LogRecord | LogMarker]:
        self.reads += 1
        return self.records

    def put(self, record: Any, producer: ProducerEpoch | None = None) -> None:
        key, value = self._kind.encode(record)
        offset = len(self.records)
        self.records.append(LogRecord(offset, key, value, 5, producer))
        self._partition.log.end_offset = offset + 1
        self.shard.apply(record, offset, 5, producer)

    def put_marker(self, *, is_commit: bool) -> None:
        marker = TransactionMarker(PRODUCER, is_commit, 1)
        self.records.append(LogMarker(len(self.records), marker))
        self._partition.log.end_offset += 1
        self.shard.apply_marker(marker, len(self.records) - 1)


@pytest.fixture
def transactions() -> Any:
    return Coordinated(transaction_kind(TransactionSettings(), lambda: 2, lambda due: None))


@pytest.fixture
def groups() -> Any:
    return Coordinated(group_kind(GroupSettings()))


def test_memory_may_have_more_than_the_log_where_kafka_stores_less(transactions: Any) -> None:
    """The last epoch, and which markers are written."""
    transactions.put(TransactionRecord("x", ONGOING))
    transactions.watch.check()
    prepared = ONGOING.moved(TransactionState.PREPARE_COMMIT, 6)
    transactions.put(TransactionRecord("x", prepared))
    transactions.shard.transactions["x"] = prepared._replace(partitions=frozenset())
    transactions.watch.check()


def test_an_epoch_that_no_record_has(transactions: Any) -> None:
    transactions.put(TransactionRecord("x", ONGOING))
    transactions.watch.check()
    transactions.shard.transactions["x"] = ONGOING._replace(epoch=4)
    with pytest.raises(Violation, match=r"state-0 on broker 1: its memory has x: .*epoch=4.*"):
        transactions.watch.check()
    assert transactions.reads == 1, "the log has not grown"


def test_a_partition_that_is_not_led_any_more_is_left_alone(transactions: Any) -> None:
    transactions.put(TransactionRecord("x", ONGOING))
    transactions.shard.transactions.clear()
    transactions._partition.leader_epoch = 5
    transactions.watch.check()
    transactions._partition.leader_epoch, transactions.is_active = 4, False
    transactions.watch.check()


def test_what_is_appended_later_in_the_turn_is_left_alone_until_then(transactions: Any) -> None:
    transactions.shard.apply(TransactionRecord("x", ONGOING), 0, 5, None)
    transactions.is_sharing = True
    transactions.watch.check()
    transactions.is_sharing = False
    with pytest.raises(Violation, match="its memory has x"):
        transactions.watch.check()


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_in_transactions(groups: Any, is_commit: bool) -> None:
    key = OffsetCommitKey("g", "t", 0)
    groups.put(CoordinatorRecord(key, OffsetCommitValue(1, -1, "", 5)), PRODUCER)
    groups.watch.check()
    assert list(content(groups.shard)) == [f"pending {key} of 7"]
    groups.put_marker(is_commit=is_commit)
    groups.watch.check()
    assert bool(content(groups.shard)) == is_commit
    groups.shard.offsets.apply(key, OffsetCommitValue(2, -1, "", 5))
    with pytest.raises(Violation, match="its memory has offset"):
        groups.watch.check()
