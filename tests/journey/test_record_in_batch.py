"""Records in their batches, by offset and by key."""

import pytest

from ottla.journey.record_in_batch import find_record, last_with_key
from ottla.records.build import build_batch, rebuild_batch
from ottla.records.compression import Compression
from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, read_header
from ottla.records.record import Record

RECORDS = [
    Record(10, 1000, b"a", b"1"),
    Record(11, 1001, b"b", b"22"),
    Record(14, 1002, b"a", b"333"),
    Record(15, 1003, None, b"a"),
]


def batch_of(compression: Compression = Compression.none) -> bytes:
    """A batch that compaction has left: offsets 12 and 13 are gone."""
    whole = build_batch([RECORDS[0]] * 6, base_offset=10, compression=compression)
    return bytes(rebuild_batch(read_header(whole), RECORDS))


@pytest.mark.parametrize("compression", list(Compression))
def test_each_record_is_found_with_its_place(compression: Compression) -> None:
    batch = batch_of(compression)
    header = read_header(batch)
    end = 0
    for number, record in enumerate(RECORDS):
        placed = find_record(header, batch, record.offset)
        assert placed is not None
        assert (placed.record, placed.number, placed.position) == (record, number, end)
        end += placed.size_bytes
        assert placed.records_bytes == len(batch_of()) - HEADER_BYTES
    assert end == len(batch_of()) - HEADER_BYTES


def test_an_offset_that_compaction_removed_is_not_found() -> None:
    batch = batch_of()
    assert find_record(read_header(batch), batch, 12) is None


def test_the_last_record_of_a_key() -> None:
    batch = batch_of()
    header = read_header(batch)
    found = last_with_key(header, batch, b"a")
    assert found is not None
    assert found.offset == 14
    found = last_with_key(header, batch, b"a", before_offset=14)
    assert found is not None
    assert found.offset == 10
    assert last_with_key(header, batch, b"33") is None
    assert last_with_key(header, batch, b"absent") is None


def test_damage_is_reported() -> None:
    batch = bytearray(batch_of(Compression.lz4))
    batch[HEADER_BYTES : HEADER_BYTES + 4] = b"\0\0\0\0"
    with pytest.raises(CorruptBatchError):
        find_record(read_header(bytes(batch)), bytes(batch), 10)
