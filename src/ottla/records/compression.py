"""The five compressions of a batch's records, in the framings that Java and librdkafka write.

gzip is RFC 1952, one or more members; lz4 is the LZ4 frame format; zstd its own frames (KIP-110).
Snappy has two shapes: the "xerial" framing of snappy-java (a header of 16 bytes, then blocks, each
after its int32 size), which is what Kafka writes, and one raw block, which some clients write; both
are read. Every decompression has a limit, so that a small batch cannot become a large memory.
"""

import zlib
from enum import IntEnum
from struct import Struct
from typing import Final

import cramjam
import lz4.frame
import zstandard

from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import Buffer

LARGEST_RECORDS_BYTES: Final = 256 * 1024 * 1024
"""The default limit on a batch's records once decompressed."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SIZE: Final = Struct(">i")


class Compression(IntEnum):
    """The number in a batch's attributes."""

    none = 0
    gzip = 1
    snappy = 2
    lz4 = 3
    zstd = 4


KAFKAS_LZ4_LEVEL: Final = 9
"""Kafka's default, by which it means the fast compressor (KIP-390)."""


def compress(compression: int, records: bytes, level: int | None = None) -> bytes:
    """`records`, a batch's uncompressed records, compressed; without `level` at the default one."""
    match compression:
        case Compression.none:
            return records
        case Compression.gzip:
            packer = zlib.compressobj(-1 if level is None else level, wbits=31)
            return packer.compress(records) + packer.flush()
        case Compression.snappy:
            return _compress_xerial(records)
        case Compression.lz4:
            # Independent blocks of 64 KB, as Kafka's own writer makes them.
            return bytes(
                lz4.frame.compress(
                    records,
                    compression_level=0 if level in (None, KAFKAS_LZ4_LEVEL) else level,
                    block_size=lz4.frame.BLOCKSIZE_MAX64KB,
                    block_linked=False,
                )
            )
        case Compression.zstd:
            return zstandard.ZstdCompressor(3 if level is None else level).compress(records)
    raise AssertionError(f"no compression has the number {compression}")


def decompress(
    compression: int, records: Buffer, *, limit_bytes: int = LARGEST_RECORDS_BYTES
) -> Buffer:
    """A batch's records, uncompressed.

    Raises CorruptBatchError where the codec refuses the bytes or no codec has the number,
    InvalidRecordError where the result would pass `limit_bytes`.
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
                reader = zstandard.ZstdDecompressor().stream_reader(
                    records, read_across_frames=True
                )
                return _within(reader.read(limit_bytes + 1), limit_bytes)
    except (
        zlib.error,
        cramjam.DecompressionError,
        zstandard.ZstdError,
        RuntimeError,  # what lz4 raises
        EOFError,
        MemoryError,
    ) as error:
        name = Compression(compression).name
        raise CorruptBatchError(f"the records are not {name}: {error}") from None
    raise CorruptBatchError(f"no compression has the number {compression}")


def _within(records: bytes, limit_bytes: int) -> bytes:
    if len(records) > limit_bytes:
        raise InvalidRecordError(f"the records take more than {limit_bytes} bytes uncompressed")
    return records


def _decompress_gzip(records: Buffer, limit_bytes: int) -> bytes:
    out = b""
    rest: Buffer = records
    while len(rest):
        member = zlib.decompressobj(wbits=31)
        out += _within(member.decompress(rest, limit_bytes + 1 - len(out)), limit_bytes)
        _within(out, limit_bytes)
        if not member.eof:
            raise EOFError("it ends early")
        rest = member.unused_data
    return out


def _decompress_lz4(records: Buffer, limit_bytes: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    out = _within(frame.decompress(bytes(records), max_length=limit_bytes + 1), limit_bytes)
    if not frame.eof:
        raise EOFError("it ends early")
    return out


def _compress_xerial(records: bytes) -> bytes:
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
    while position < len(view):
        if position + _SIZE.size > len(view):
            raise EOFError("it ends inside a block's size")
        (size,) = _SIZE.unpack_from(view, position)
        position += _SIZE.size
        if not 0 < size <= len(view) - position:
            raise EOFError(f"a block says {size} bytes, and {len(view) - position} are left")
        out += _decompress_block(view[position : position + size], len(out), limit_bytes)
        position += size
    return bytes(out)


def _decompress_block(block: memoryview, before_bytes: int, limit_bytes: int) -> bytes:
    """One raw snappy block. Its first varint is the size it will have, so a bomb is refused
    unopened."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if before_bytes + size > limit_bytes:
        raise InvalidRecordError(f"the records take more than {limit_bytes} bytes uncompressed")
    return bytes(cramjam.snappy.decompress_raw(bytes(block)))
