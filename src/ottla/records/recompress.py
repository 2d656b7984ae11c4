"""Giving a batch the topic's own compression (topic config `compression.type`, other than
`producer`)."""

from dataclasses import replace

from ottla.records.build import finish_batch
from ottla.records.compression import LARGEST_RECORDS_BYTES, compress, decompress
from ottla.records.header import COMPRESSION_MASK, HEADER_BYTES, BatchHeader, Buffer


def recompress(
    header: BatchHeader,
    batch: Buffer,
    compression: int,
    *,
    level: int | None = None,
    limit_bytes: int = LARGEST_RECORDS_BYTES,
) -> tuple[BatchHeader, bytes]:
    """The same batch in `compression`: its header and its bytes.

    The records themselves are not parsed, as their deltas stay what they are.
    Raises CorruptBatchError or InvalidRecordError where the batch cannot be decompressed within
    `limit_bytes`.
    """
    packed = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    records = decompress(header.compression, packed, limit_bytes=limit_bytes)
    attributes = (header.attributes & ~COMPRESSION_MASK) | compression
    changed = replace(header, attributes=attributes)
    return changed, finish_batch(changed, compress(compression, bytes(records), level))
