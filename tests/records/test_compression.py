import gzip
import struct
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import (
    gzip_encode,
    lz4_decode,
    lz4_encode,
    zstd_decode,
)

from ottla.records.compression import Compression, compress, decompress
from ottla.records.errors import CorruptBatchError, InvalidRecordError

TEXT = b"Ottla and Franz, " * 9_000


def xerial(data: bytes, block_bytes: int) -> bytes:
    """As snappy-java writes it, with blocks of the caller's size."""
    packed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block_bytes):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + block_bytes]))
        packed += struct.pack(">i", len(block)) + block
    return packed


def test_a_snappy_block_by_hand() -> None:
    # The decompressed size, the tag of a literal of 5 bytes, the bytes.
    block = b"\x05" + bytes(((5 - 1) << 2,)) + b"Ottla"
    assert decompress(Compression.snappy, block) == b"Ottla"
    framed = xerial(b"", 1) + struct.pack(">i", len(block)) + block
    assert decompress(Compression.snappy, framed) == b"Ottla"


@pytest.mark.parametrize("compression", list(Compression))
@given(data=st.binary(max_size=100_000))
def test_compressed_records_round_trip(compression: Compression, data: bytes) -> None:
    assert bytes(decompress(compression, compress(compression, data))) == data


@pytest.mark.parametrize(
    ("compression", "packed"),
    [
        (Compression.gzip, gzip_encode(TEXT)),
        (Compression.gzip, gzip.compress(TEXT[:5_000]) + gzip.compress(TEXT[5_000:])),
        (Compression.snappy, xerial(TEXT, 64 * 1024)),
        (Compression.snappy, xerial(TEXT, 500)),
        (Compression.snappy, bytes(cramjam.snappy.compress_raw(TEXT))),
        (Compression.lz4, lz4_encode(TEXT)),
        (Compression.lz4, lz4.frame.compress(TEXT, content_checksum=True, store_size=False)),
        (Compression.zstd, zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
        (Compression.zstd, zstandard.ZstdCompressor(level=1, write_checksum=True).compress(TEXT)),
    ],
)
def test_compressed_records_of_other_clients_are_read(
    compression: Compression, packed: bytes
) -> None:
    assert bytes(decompress(compression, packed)) == TEXT


def test_another_client_reads_compressed_records() -> None:
    assert gzip.decompress(compress(Compression.gzip, TEXT)) == TEXT
    assert lz4_decode(compress(Compression.lz4, TEXT)) == TEXT
    assert zstd_decode(compress(Compression.zstd, TEXT)) == TEXT


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
@given(data=st.binary(max_size=200))
def test_random_bytes_are_decompressed_or_refused(compression: int, data: bytes) -> None:
    with suppress(CorruptBatchError, InvalidRecordError):
        assert len(decompress(compression, data, limit_bytes=1_000_000)) <= 1_000_000


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_truncated_bytes_are_refused(compression: int) -> None:
    packed = compress(compression, TEXT)
    for end in (0, 1, 5, 20, len(packed) // 2, len(packed) - 1):
        try:
            found = bytes(decompress(compression, packed[:end]))
        except CorruptBatchError:
            continue
        # Empty gzip and snappy data is empty; zstd ends without an error at a block's end.
        assert len(found) < len(TEXT)
        assert TEXT.startswith(found)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_a_bomb_is_refused_at_the_limit(compression: int) -> None:
    packed = compress(compression, bytes(20_000_000))
    with pytest.raises(InvalidRecordError, match="maximum of 1000000 bytes"):
        decompress(compression, packed, limit_bytes=1_000_000)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_the_limit_itself_is_allowed(compression: int) -> None:
    packed = compress(compression, TEXT)
    assert bytes(decompress(compression, packed, limit_bytes=len(TEXT))) == TEXT


@pytest.mark.parametrize("compression", [5, 6, 7])
def test_unknown_numbers_are_refused(compression: int) -> None:
    with pytest.raises(CorruptBatchError, match="is unknown"):
        decompress(compression, b"abc")
