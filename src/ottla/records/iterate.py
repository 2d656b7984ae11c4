"""The records inside a batch.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint | key length
    varint | key | value length varint | value | number of headers varint | for each: name length
    varint, name, value length varint, value       (a length of -1 is null;
    only names cannot be null)

A record costs some microseconds of Python, so the produce and fetch paths use this only for small
batches and compacted topics.
"""

from collections.abc import Iterator

from ottla.records.compression import LARGEST_RECORDS_BYTES, decompress
from ottla.records.errors import InvalidRecordError
from ottla.records.header import HEADER_BYTES, BatchHeader, Buffer, TimestampType, read_header
from ottla.records.record import Header, Record
from ottla.records.varint import decode_varint


def iterate_records(
    batch: Buffer, header: BatchHeader | None = None, *, limit_bytes: int = LARGEST_RECORDS_BYTES
) -> Iterator[Record]:
    """The records of one whole batch, with absolute offsets and timestamps.

    Raises InvalidRecordError for a record with a wrong length, or if the number of records is not
    the header's count; CorruptBatchError for a bad header or undecodable compression.
    """
    if header is None:
        header = read_header(batch)
    if len(batch) < header.size_bytes:
        raise InvalidRecordError(f"{len(batch)} bytes of a batch of {header.size_bytes}")
    packed = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    records = bytes(decompress(header.compression, packed, limit_bytes=limit_bytes))
    append_time_ms = (
        header.max_timestamp if header.timestamp_type is TimestampType.log_append_time else None
    )
    position = 0
    for number in range(header.count):
        if position >= len(records):
            raise InvalidRecordError(f"the batch states {header.count} records but has {number}")
        record, position = _read_record(records, position, header)
        if append_time_ms is not None:
            record = Record(record.offset, append_time_ms, record.key, record.value, record.headers)
        yield record
    if position != len(records):
        raise InvalidRecordError(
            f"{len(records) - position} bytes are left after the batch's {header.count} records"
        )


def _read_record(records: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    size, position = decode_varint(records, position)
    end = position + size
    if size < 0 or end > len(records):
        raise InvalidRecordError(
            f"a record states {size} bytes; {len(records) - position} are left"
        )
    timestamp_delta, position = decode_varint(records, position + 1)
    offset_delta, position = decode_varint(records, position)
    key, position = _read_bytes(records, position, end)
    value, position = _read_bytes(records, position, end)
    count, position = decode_varint(records, position)
    headers: tuple[Header, ...] = ()
    if count:
        headers, position = _read_headers(records, position, end, count)
    if position != end:
        raise InvalidRecordError(
            f"a record states {size} bytes, but its fields take {end - position} less"
        )
    offset = header.base_offset + offset_delta
    return Record(offset, header.base_timestamp + timestamp_delta, key, value, headers), end


def _read_bytes(records: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = decode_varint(records, position)
    if size < 0:
        return None, position
    if position + size > end:
        raise InvalidRecordError(
            f"a field of {size} bytes in a record that has {end - position} left"
        )
    return records[position : position + size], position + size


def _read_headers(
    records: bytes, position: int, end: int, count: int
) -> tuple[tuple[Header, ...], int]:
    # Each header takes at least two bytes, which bounds a wrong count.
    if not 0 <= count <= (end - position) // 2:
        raise InvalidRecordError(f"a record states {count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_bytes(records, position, end)
        if name is None:
            raise InvalidRecordError("a header without a name")
        value, position = _read_bytes(records, position, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
