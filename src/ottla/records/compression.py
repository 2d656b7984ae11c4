"""The five compressions of a batch's records, in the formats that Java and librdkafka write.

gzip is RFC 1952, one or more members; lz4 is the LZ4 frame format; zstd is its own (KIP-110).
Snappy has two forms: the "xerial" framing of snappy-java (a header of 16 bytes, then blocks, each
after its int32 size), which Kafka writes, and one raw block, which some clients write; both are
read. Every decompression has a limit, so that a small batch cannot fill the memory.

Bytes after the compressed records are treated as in Kafka's readers: ignored after the end of an
lz4 frame, after the last gzip member, and if they are too short for the size of another snappy
block; refused after zstd.

The libraries are imported with their first batch: together they take 2 MB, and most brokers see
batches of one codec.
"""

import zlib
from contextlib import suppress
from enum import IntEnum
from struct import Struct
from typing import Final

from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import Buffer

LARGEST_RECORDS_BYTES: Final = 256 * 1024 * 1024
"""The default limit on a batch's decompressed records."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SIZE: Final = Struct(">i")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_STEP_BYTES: Final = 2 * 1024 * 1024


class Compression(IntEnum):
    """The number in a batch's attributes."""

    none = 0
    gzip = 1
    snappy = 2
    lz4 = 3
    zstd = 4


KAFKAS_LZ4_LEVEL: Final = 9
"""Kafka's default; it means the fast compressor (KIP-390)."""


def compress(compression: int, records: bytes, level: int | None = None) -> bytes:
    """Compress a batch's `records`; the default level if `level` is None."""
    match compression:
        case Compression.none:
            return records
        case Compression.gzip:
            packer = zlib.compressobj(-1 if level is None else level, wbits=31)
            return packer.compress(records) + packer.flush()
        case Compression.snappy:
            return _compress_xerial(records)
        case Compression.lz4:
            import lz4.frame

            # Independent blocks of 64 KB, as in Kafka's own writer.
            return bytes(
                lz4.frame.compress(
                    records,
                    compression_level=0 if level in (None, KAFKAS_LZ4_LEVEL) else level,
                    block_size=lz4.frame.BLOCKSIZE_MAX64KB,
                    block_linked=False,
                )
            )
        case Compression.zstd:
            import zstandard

            return zstandard.ZstdCompressor(3 if level is None else level).compress(records)
    raise AssertionError(f"compression {compression} is unknown")


def decompress(
    compression: int, records: Buffer, *, limit_bytes: int = LARGEST_RECORDS_BYTES
) -> Buffer:
    """A batch's records, decompressed.

    Raises CorruptBatchError if the codec refuses the bytes or the number is unknown,
    InvalidRecordError if the result would exceed `limit_bytes`.
    """
    if compression == Compression.none:
        return records
    try:
        match compression:
            case Compression.gzip:
                return _decompress_gzip(records, limit_bytes)
            case Compression.snappy:
                return _decompress_snappy(records, limit_bytes)
            case Compression.lz4:
                return _decompress_lz4(records, limit_bytes)
            case Compression.zstd:
                return _decompress_zstd(records, limit_bytes)
    except (
        zlib.error,
        RuntimeError,  # raised by lz4
        EOFError,
        MemoryError,
    ) as error:
        name = Compression(compression).name
        raise CorruptBatchError(f"the records are not {name}: {error}") from None
    raise CorruptBatchError(f"compression {compression} is unknown")


def _ensure_within(size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        raise InvalidRecordError(
            f"the records take more than the maximum of {limit_bytes} bytes once decompressed"
        )


def _decompress_gzip(records: Buffer, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    size_bytes = position = 0
    data = memoryview(records)
    while position < len(data):
        if parts and bytes(data[position : position + 2]) != _GZIP_MAGIC:
            break
        member = zlib.decompressobj(wbits=31)
        # In steps: after each, what was made and what is left are copied, and meanwhile no other
        # thread runs.
        while not member.eof:
            packed: Buffer = member.unconsumed_tail
            if not packed:
                packed = data[position : position + _STEP_BYTES]
                position += len(packed)
            part = member.decompress(packed, min(_STEP_BYTES, limit_bytes + 1 - size_bytes))
            parts.append(part)
            size_bytes += len(part)
            _ensure_within(size_bytes, limit_bytes)
            is_fed = position == len(data) and not member.unconsumed_tail
            if is_fed and not part and not member.eof:
                raise EOFError("it ends early")
        position -= len(member.unused_data)
    return b"".join(parts)


def _decompress_lz4(records: Buffer, limit_bytes: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    # The requested size is allocated: one step is enough for nearly every batch.
    out: bytes = frame.decompress(records, max_length=min(_STEP_BYTES, limit_bytes + 1))
    if frame.eof and len(out) <= limit_bytes:
        return out
    parts, size_bytes = [out], len(out)
    while not frame.eof:
        out = frame.decompress(b"", max_length=_STEP_BYTES)
        if not out and not frame.eof:
            raise EOFError("it ends early")
        parts.append(out)
        size_bytes += len(out)
        _ensure_within(size_bytes, limit_bytes)
    _ensure_within(size_bytes, limit_bytes)
    return b"".join(parts)


def _decompress_zstd(records: Buffer, limit_bytes: int) -> bytes:
    import zstandard

    unpacker = zstandard.ZstdDecompressor()
    try:
        size_bytes = zstandard.frame_content_size(records)
        _ensure_within(size_bytes, limit_bytes)
        if size_bytes > 0:
            with suppress(zstandard.ZstdError):
                return unpacker.decompress(records, allow_extra_data=False)
            # Several frames, or a broken one: reading the stream shows which.
        # Java's producer does not write the size.
        reader = unpacker.stream_reader(records, read_across_frames=True)
        parts, size_bytes = [], 0
        while part := reader.read(_STEP_BYTES):
            parts.append(part)
            size_bytes += len(part)
            _ensure_within(size_bytes, limit_bytes)
        return b"".join(parts)
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None


def _compress_xerial(records: bytes) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER]
    for start in range(0, len(records), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(records[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(records: Buffer, limit_bytes: int) -> bytes:
    view = memoryview(records)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(view, 0, limit_bytes)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    while position + _SIZE.size <= len(view):
        (size,) = _SIZE.unpack_from(view, position)
        position += _SIZE.size
        if not 0 < size <= len(view) - position:
            raise EOFError(f"a block states {size} bytes, but {len(view) - position} are left")
        out += _decompress_block(view[position : position + size], len(out), limit_bytes)
        position += size
    return bytes(out)


def _decompress_block(block: memoryview, before_bytes: int, limit_bytes: int) -> bytes:
    """One raw snappy block. Its first varint is the decompressed size, so a bomb is refused before
    decompression."""
    import cramjam

    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    _ensure_within(before_bytes + size, limit_bytes)
    try:
        return bytes(cramjam.snappy.decompress_raw(bytes(block)))
    except cramjam.DecompressionError as error:
        raise EOFError(str(error)) from None
