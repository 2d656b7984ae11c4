"""How large a transaction may be."""

from __future__ import annotations

import pytest

from ottla.mirroring.target_producer import DELIVERED_WITHIN_S
from ottla.mirroring.transaction_size import (
    FIRST_BYTES,
    GROWTH,
    LONG_S,
    MAX_BYTES,
    MAX_PARTITIONS,
    MAX_RECORDS,
    MIN_BYTES,
    QUICK_S,
    TransactionSize,
)

RECORD_BYTES = 1_000


def mirror_over(size: TransactionSize, bytes_per_s: float, total_bytes: int) -> int:
    """Full transactions over a link, one after the other. Returns how many came too late."""
    late = 0
    while total_bytes > 0:
        assert late < 20, "it never gets on"
        size_bytes = min(size.limit_bytes, total_bytes)
        took_s = size_bytes / bytes_per_s
        if took_s > DELIVERED_WITHIN_S:
            late += 1
            is_smaller = size.note_late(size_bytes, DELIVERED_WITHIN_S / took_s)
            assert is_smaller or size_bytes <= MIN_BYTES
        else:
            size.note_committed(size_bytes, took_s)
            total_bytes -= size_bytes
    return late


@pytest.mark.parametrize("bytes_per_s", [5_000, 20_000, 200_000, 2_000_000, 250_000_000])
def test_a_link_of_any_speed_gets_on(bytes_per_s: int) -> None:
    size = TransactionSize()
    late = mirror_over(size, bytes_per_s, bytes_per_s * 120)
    is_slow = FIRST_BYTES / bytes_per_s > DELIVERED_WITHIN_S
    assert late == is_slow, "what was acknowledged of the first tells the size of the next"
    assert size.limit_bytes / bytes_per_s <= LONG_S or size.limit_bytes == MIN_BYTES


def test_a_fast_link_has_large_transactions_after_a_few() -> None:
    size = TransactionSize()
    sizes: list[int] = []
    while not sizes or sizes[-1] != size.limit_bytes:
        sizes.append(size.limit_bytes)
        size.note_committed(size.limit_bytes, 0.1)
    assert sizes == [FIRST_BYTES, FIRST_BYTES * GROWTH, FIRST_BYTES * GROWTH**2, MAX_BYTES]


def test_a_link_that_becomes_slow() -> None:
    size = TransactionSize()
    mirror_over(size, 250_000_000, 2_000_000_000)
    assert size.limit_bytes == MAX_BYTES
    assert mirror_over(size, 1_000_000, 100_000_000) == 1
    mirror_over(size, 250_000_000, 2_000_000_000)
    assert size.limit_bytes == MAX_BYTES, "and fast again"


def test_one_that_grows_has_time_left() -> None:
    assert QUICK_S * GROWTH < LONG_S < DELIVERED_WITHIN_S


def test_small_ones_say_nothing_of_a_link() -> None:
    size = TransactionSize()
    for _ in range(10):
        size.note_committed(RECORD_BYTES, 0.01)
    assert size.limit_bytes == FIRST_BYTES


def test_a_target_that_acknowledges_nothing() -> None:
    size = TransactionSize()
    assert size.note_late(FIRST_BYTES, 0.0)
    assert size.limit_bytes == MIN_BYTES
    assert not size.note_late(MIN_BYTES, 0.0), "it is not the size"


def test_full() -> None:
    size = TransactionSize()
    assert not size.is_full(MAX_RECORDS - 1, FIRST_BYTES - 1, MAX_PARTITIONS - 1)
    assert size.is_full(MAX_RECORDS, 0, 1)
    assert size.is_full(1, FIRST_BYTES, 1)
    assert size.is_full(MAX_PARTITIONS, 0, MAX_PARTITIONS)
