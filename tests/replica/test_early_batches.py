"""What a partition learns of the batches that came before it."""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.replica.early_batches import MAX_PARTITIONS, EarlyBatches

UNKNOWN = ErrorCode.unknown_topic_or_partition


def batch(producer_id: int = 3, sequence: int = 0) -> bytes:
    return build_batch(
        [Record(0, 1, None, b"a")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def test_the_partition_takes_them_once() -> None:
    early = EarlyBatches()
    early.add(("t", 0), batch(), UNKNOWN, 1)
    early.add(("t", 1), batch(4), UNKNOWN, 1)
    found = early.take(("id", 0), ("t", 0))
    assert found is not None
    assert found.comes_first(3, 0, 1, 2) is UNKNOWN
    assert found.comes_first(4, 0, 1, 2) is None
    assert early.take(("id", 0), ("t", 0)) is None
    assert early.take(("t", 1)) is not None


def test_what_is_no_idempotent_batch_is_not_noted() -> None:
    early = EarlyBatches()
    plain = build_batch([Record(0, 1, None, b"a")])
    for records in (None, b"", b"x" * 100, plain):
        early.add(("t", 0), records, UNKNOWN, 1)
    assert early.take(("t", 0)) is None


def test_the_number_of_partitions_is_limited() -> None:
    early = EarlyBatches()
    for index in range(MAX_PARTITIONS + 1):
        early.add(("t", index), batch(), UNKNOWN, 1)
    assert early.take(("t", 0)) is None
    assert early.take(("t", 1)) is not None
