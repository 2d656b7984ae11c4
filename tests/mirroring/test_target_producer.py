"""What becomes of a transaction that fails, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import target_producer
from ottla.mirroring.clusters import Side
from ottla.mirroring.group_member import GroupMember
from ottla.mirroring.position import Origin, Position
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.target_producer import MAX_POSITIONS, TargetProducer, TransactionFailed
from ottla.mirroring.target_writer import TargetWriter
from ottla.mirroring.written_records import Piece


class StuckProducer:
    """One record is never delivered. `failed_by`: what has failed the transaction; librdkafka
    refuses all but this question then.
    """

    def __init__(self) -> None:
        self.failed_by: Any = None

    def __len__(self) -> int:
        return 1

    def begin_transaction(self) -> None:
        if self.failed_by is not None:
            raise KafkaException(self.failed_by)

    def abort_transaction(self, _within_s: float) -> None:
        pass

    def produce(self, *_: Any, **__: Any) -> None:
        if self.failed_by is not None:
            raise KafkaException(reason("_STATE"))

    def poll(self, _within_s: float) -> int:
        return 0

    def flush(self, _within_s: float) -> int:
        return 1


@pytest.fixture
def stuck() -> StuckProducer:
    return StuckProducer()


@pytest.fixture
def producer(stuck: StuckProducer) -> Iterator[Any]:
    side = Side("127.0.0.1:1", {"bootstrap.servers": "127.0.0.1:1"}, "target")
    member = GroupMember(MirrorSpec(), side, lambda: None)
    made: Any = TargetProducer(MirrorSpec(), side, member)
    made._producer = stuck
    yield made
    made.close()
    member.close()


def reason(code: str) -> Any:
    kind: Any = KafkaError
    return kind(getattr(kind, code))


def test_what_is_behind_a_failed_record_says_why_it_failed(
    producer: Any, stuck: StuckProducer
) -> None:
    """Records in the middle are not reported, and those behind them are only purged."""
    producer.open()
    stuck.failed_by = reason("MSG_SIZE_TOO_LARGE")
    with pytest.raises(TransactionFailed) as caught:
        producer.produce("t", b"x", None, partition=0)
    assert caught.value.is_too_large
    for code in ("_STATE", "_PURGE_QUEUE", "_PURGE_INFLIGHT"):
        assert producer._failed(reason(code)).is_too_large
    assert not producer._failed(reason("_MSG_TIMED_OUT")).is_too_large


def test_the_first_record_that_failed_counts(producer: Any) -> None:
    """Not those that were purged, whichever is reported first."""
    delivered = TargetWriter(MirrorSpec(), producer)._reports_to(Piece([]))
    for topic, code in (("t", "_PURGE_QUEUE"), ("u", "MSG_SIZE_TOO_LARGE"), ("v", "_STATE")):
        record = type("Record", (), {"topic": lambda _, topic=topic: topic})
        delivered(reason(code), record())
    assert producer._problem.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert producer._refusing == "u"


def test_a_transaction_is_given_up_before_the_target_ends_it(
    producer: Any, stuck: StuckProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would look like another process of the same name. All its waits count together."""
    assert target_producer.DELIVERED_WITHIN_S * 1000 < target_producer.TRANSACTION_TIMEOUT_MS
    monkeypatch.setattr(target_producer, "DELIVERED_WITHIN_S", 0.0)
    for wait in (producer.flush, partial(producer.await_delivered, 0)):
        producer.open()
        with pytest.raises(TransactionFailed, match="not acknowledged") as caught:
            wait()
        assert (caught.value.is_late, caught.value.unacknowledged) == (True, len(stuck))
        producer.abort()


class Taking(StuckProducer):
    """Takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets: list[int] = []

    def __len__(self) -> int:
        return 0

    def flush(self, _within_s: float) -> int:
        return 0

    def send_offsets_to_transaction(self, offsets: list[Any], *_: Any) -> None:
        self.offsets.append(len(offsets))

    def commit_transaction(self, _within_s: float) -> None:
        pass


def test_no_request_has_too_many_positions(producer: Any) -> None:
    producer._producer = taking = Taking()
    position = Position(7, Origin("id", "id", ("cluster",)))
    partitions = [TopicPartition("t", index) for index in range(MAX_POSITIONS + 1)]
    TargetWriter(MirrorSpec(), producer).commit(
        dict.fromkeys(partitions, position), {"t": "t"}, {}, lambda: None
    )
    assert taking.offsets == [MAX_POSITIONS, 1]
