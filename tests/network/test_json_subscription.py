from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.network import json_subscription
from ottla.network.json_subscription import Subscription
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.control import ControlType, write_end_marker
from ottla.records.errors import InvalidRecordError
from ottla.records.record import Record


def batch(offset: int, *values: str, producer_id: int = -1, compression: int = 0) -> bytes:
    records = [Record(0, 5, value[:1].encode(), value.encode()) for value in values]
    is_transactional = producer_id >= 0
    return build_batch(
        records,
        base_offset=offset,
        producer_id=producer_id,
        is_transactional=is_transactional,
        compression=compression,
    )


def marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    return offset.to_bytes(8, "big") + write_end_marker(kind, producer_id, 0, 0, 5)[8:]


def fetched(*batches: bytes, aborted: tuple[tuple[int, int], ...] = ()) -> SimpleNamespace:
    transactions = tuple(
        SimpleNamespace(producer_id=producer, first_offset=first) for producer, first in aborted
    )
    return SimpleNamespace(aborted_transactions=transactions, records=b"".join(batches))


async def values(subscription: Subscription, response: SimpleNamespace) -> list[str]:
    return [(record.value or b"").decode() async for record in subscription.records_in(0, response)]


def new(permits: int = 100, key: bytes | None = None, offset: int = 0) -> Subscription:
    return Subscription("t", key, permits, {0: offset})


async def test_no_more_than_there_are_permits() -> None:
    one = new(permits=2)
    response = fetched(batch(0, "a", "b", "c"), batch(3, "d"))
    assert await values(one, response) == ["a", "b"]
    assert (one.permits, one.offsets) == (0, {0: 2})
    one.permits = 5
    assert await values(one, response) == ["c", "d"]
    assert (one.permits, one.offsets) == (3, {0: 4})


async def test_a_key_and_an_offset_in_the_middle_of_a_batch() -> None:
    one = new(key=b"b", offset=2)
    assert await values(one, fetched(batch(0, "b1", "a", "a", "b2", "c"))) == ["b2"]
    assert (one.permits, one.offsets) == (99, {0: 5})


async def test_what_is_aborted_is_left_out() -> None:
    response = fetched(
        batch(0, "a", producer_id=1),
        batch(1, "never", producer_id=2),
        marker(2, 1, ControlType.commit),
        batch(3, "never", producer_id=2),
        marker(4, 2, ControlType.abort),
        batch(5, "b", producer_id=2),
        marker(6, 2, ControlType.commit),
        batch(7, "never", producer_id=2),
        marker(8, 2, ControlType.abort),
        aborted=((2, 7), (2, 1)),
    )
    one = new()
    assert await values(one, response) == ["a", "b"]
    assert one.offsets == {0: 9}


@pytest.mark.parametrize("compression", list(Compression))
async def test_compression(compression: Compression) -> None:
    one = new()
    assert await values(one, fetched(batch(0, "a", "b", compression=compression))) == ["a", "b"]


async def test_a_batch_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left behind: the page is told, and goes on."""
    monkeypatch.setattr(json_subscription, "MAX_BATCH_BYTES", 1_000)
    one = new()
    response = fetched(batch(0, "a" * 5_000, compression=Compression.zstd), batch(1, "b"))
    with pytest.raises(InvalidRecordError):
        await values(one, response)
    assert one.offsets == {0: 1}
