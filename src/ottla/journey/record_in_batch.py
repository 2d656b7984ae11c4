"""The position of a record within its batch. Pure: the batch's bytes are given.

Offsets within a batch may have gaps (compaction), so the record is searched, not computed.
"""

from typing import NamedTuple

from ottla.records.compression import decompress
from ottla.records.header import HEADER_BYTES, BatchHeader, Buffer
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.records.varint import decode_varint


class RecordInBatch(NamedTuple):
    """A record and its position: its number in the batch (from 0), and its position and size in the
    uncompressed records.
    """

    record: Record
    number: int
    position: int
    size_bytes: int
    records_bytes: int
    """The size of all records of the batch, uncompressed."""


def find_record(header: BatchHeader, batch: bytes, offset: int) -> RecordInBatch | None:
    """The record at `offset` in this whole batch; None if compaction has removed it.

    Raises CorruptBatchError or InvalidRecordError, like `iterate_records`.
    """
    packed = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    records = bytes(decompress(header.compression, packed))
    position = 0
    for number, record in enumerate(iterate_records(batch, header)):
        size, start = decode_varint(records, position)
        end = start + size
        if record.offset == offset:
            return RecordInBatch(record, number, position, end - position, len(records))
        position = end
    return None


def last_with_key(
    header: BatchHeader, batch: Buffer, key: bytes, before_offset: int | None = None
) -> Record | None:
    """The last record of this whole batch (below `before_offset`) with the key, if any.

    The key is first searched in all bytes at once, which is a thousand times faster than reading
    records; most batches end there.
    """
    if header.is_control:
        return None
    packed = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    if key not in bytes(decompress(header.compression, packed)):
        return None
    found: Record | None = None
    for record in iterate_records(batch, header):
        if before_offset is not None and record.offset >= before_offset:
            break
        if record.key == key:
            found = record
    return found


def all_with_key(header: BatchHeader, batch: Buffer, key: bytes) -> list[Record]:
    """All records of this whole batch with the key, found as in `last_with_key`."""
    if last_with_key(header, batch, key) is None:
        return []
    return [record for record in iterate_records(batch, header) if record.key == key]
