"""Keys near a record: of one producer, up to a limit, as far as the batches are sound."""

from collections.abc import Iterator

from ottla.journey.near_keys import MAX_KEYS, keys_of_producer
from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader, read_header
from ottla.records.record import Record

NOBODY = -1


def batch_of(*keys: bytes | None) -> tuple[BatchHeader, bytes]:
    batch = bytes(build_batch([Record(0, 1, key, b"v") for key in keys]))
    return read_header(batch), batch


def test_keys_of_the_producer_count_once() -> None:
    batches = [batch_of(b"a", None, b"b"), batch_of(b"a", b"c")]
    assert keys_of_producer(batches, NOBODY) == {b"a", b"b", b"c"}
    assert keys_of_producer(batches, 7) == frozenset()


def test_no_more_than_the_limit_is_read() -> None:
    many = [batch_of(*(b"%d-%d" % (batch, key) for key in range(100))) for batch in range(9)]
    assert len(keys_of_producer(many, NOBODY)) == MAX_KEYS


def test_a_damaged_batch_ends_the_search() -> None:
    def batches() -> Iterator[tuple[BatchHeader, bytes]]:
        yield batch_of(b"a")
        raise CorruptBatchError("torn")

    assert keys_of_producer(batches(), NOBODY) == {b"a"}
