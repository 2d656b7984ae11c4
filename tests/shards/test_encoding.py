"""Kafka's primitive types, byte by byte, and what bad bytes are answered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.shards.encoding import MAX_STRING_BYTES, Reader, Writer, fits_string, unsigned_varint


def written(write: Callable[[Writer], None]) -> bytes:
    writer = Writer()
    write(writer)
    return writer.content()


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (2**31 - 1, "ffffffff07"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_varints_are_those_of_kafkas_byte_utils(value: int, content: str) -> None:
    assert unsigned_varint(value).hex() == content
    assert Reader(bytes.fromhex(content)).unsigned_varint() == value


@pytest.mark.parametrize(
    ("write", "content"),
    [
        (lambda to: to.int16(-2), "fffe"),
        (lambda to: to.int32(258), "00000102"),
        (lambda to: to.int64(-1), "ffffffffffffffff"),
        (lambda to: to.string("größe"), "0007 6772c3b6c39f65"),
        (lambda to: to.nullable_string(None), "ffff"),
        (lambda to: to.nullable_string(""), "0000"),
        (lambda to: to.compact_string("ab"), "03 6162"),
        (lambda to: to.byte_string(b"ab"), "00000002 6162"),
    ],
)
def test_values_are_big_endian_with_their_length_before_them(
    write: Callable[[Writer], None], content: str
) -> None:
    assert written(write) == bytes.fromhex(content)


@given(
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**32 - 1),
    st.one_of(st.none(), st.text(max_size=200)),
    st.text(max_size=200),
    st.binary(max_size=200),
)
def test_what_is_written_is_read(
    short: int, long: int, varint: int, text: str | None, compact: str, content: bytes
) -> None:
    writer = Writer()
    writer.int16(short)
    writer.int64(long)
    writer.unsigned_varint(varint)
    writer.nullable_string(text)
    writer.compact_string(compact)
    writer.byte_string(content)
    reader = Reader(writer.content())
    assert (reader.int16(), reader.int64(), reader.unsigned_varint()) == (short, long, varint)
    assert (reader.nullable_string(), reader.string(compact=True)) == (text, compact)
    assert reader.byte_string() == content
    assert reader.position == len(reader.buffer)


def test_a_text_fits_by_its_size_in_utf_8() -> None:
    assert fits_string("a" * MAX_STRING_BYTES)
    assert not fits_string("a" * (MAX_STRING_BYTES + 1))
    assert fits_string("ö" * (MAX_STRING_BYTES // 2))
    assert not fits_string("ö" * (MAX_STRING_BYTES // 2 + 1))


@pytest.mark.parametrize(
    ("read", "content", "says"),
    [
        (Reader.int32, "0000", "ends at byte 2 inside an integer"),
        (Reader.unsigned_varint, "80", "1 bytes at 1 of 1"),
        (Reader.unsigned_varint, "8080808080", "varint longer than 5 bytes"),
        (Reader.string, "ffff", "null where a string must be"),
        (Reader.string, "0005 6162", "5 bytes at 2 of 4"),
        (Reader.string, "0001 ff", "invalid start byte"),
        (Reader.byte_string, "ffffffff", "-1 bytes at 4 of 4"),
        (Reader.byte_string, "7fffffff 00", "2147483647 bytes at 4 of 5"),
        (Reader.array_size, "7fffffff 00", "array of 2147483647 elements in 5 bytes"),
        (Reader.array_size, "ffffffff", "array of -1 elements in 4 bytes"),
        (Reader.tagged_fields, "01 00 05 61", "5 bytes at 3 of 4"),
        (Reader.uuid, "00", "16 bytes at 0 of 1"),
    ],
)
def test_bytes_that_end_early_or_lie_are_refused(
    read: Callable[[Reader], Any], content: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        read(Reader(bytes.fromhex(content)))


def test_tagged_fields_and_ids_are_read() -> None:
    assert Reader(bytes.fromhex("02 00 01 61 05 02 6263")).tagged_fields() == {0: b"a", 5: b"bc"}
    assert Reader(bytes(15) + b"\1").uuid() == UUID(int=1)
