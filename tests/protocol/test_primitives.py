import struct
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol import primitives
from ottla.protocol.errors import DecodeError
from ottla.protocol.primitives import Output


def written(write: primitives.Writer, value: object) -> bytes:
    output = Output()
    write(output, value)
    return b"".join(output.parts())


@given(st.integers(0, 2**35 - 1))
def test_varint_round_trips(value: int) -> None:
    encoded = written(primitives.write_varint, value)
    assert primitives.read_varint(encoded, 0) == (value, len(encoded))


def test_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(DecodeError, match="longer than five"):
        primitives.read_varint(b"\xff" * 6, 0)


@pytest.mark.parametrize("compact", [True, False])
@given(value=st.none() | st.text(max_size=300))
def test_text_round_trips(compact: bool, value: str | None) -> None:
    read, write = primitives.text(compact, null_allowed=True)
    encoded = written(write, value)
    assert read(encoded, 0) == (value, len(encoded))


def test_null_is_refused_if_not_allowed() -> None:
    read, _ = primitives.text(compact=False, null_allowed=False)
    with pytest.raises(DecodeError, match="null"):
        read(b"\xff\xff", 0)


def test_text_too_long_for_the_old_form_is_refused_in_the_new_one() -> None:
    read, write = primitives.text(compact=True, null_allowed=False)
    assert read(written(write, "x" * 32_767), 0)[0] == "x" * 32_767
    with pytest.raises(DecodeError, match="32768 bytes"):
        read(written(write, "x" * 32_768), 0)


def test_text_that_is_not_utf8_is_refused() -> None:
    read, _ = primitives.text(compact=False, null_allowed=False)
    with pytest.raises(DecodeError, match="UTF-8"):
        read(b"\x00\x02\xff\xfe", 0)


@pytest.mark.parametrize("count", [-2, 5, 2_000_000, 2**31 - 1])
def test_array_larger_than_the_bytes_is_refused_before_reading(count: int) -> None:
    item = (primitives.read_int8, primitives.write_int8)
    read, _ = primitives.array(item, compact=False, null_allowed=True)
    with pytest.raises(DecodeError, match="array"):
        read(struct.pack(">i", count) + b"1234", 0)


def test_records_are_a_view_into_the_frame_and_bytes_a_copy() -> None:
    frame = memoryview(struct.pack(">i", 3) + b"abc")
    as_records, _ = primitives.data(compact=False, null_allowed=False, copied=False)[0](frame, 0)
    as_bytes, _ = primitives.data(compact=False, null_allowed=False, copied=True)[0](frame, 0)
    assert isinstance(as_records, memoryview)
    assert bytes(as_records) == as_bytes == b"abc"
    assert isinstance(as_bytes, bytes)


def test_large_data_is_passed_on_by_reference() -> None:
    large = bytes(primitives.COPY_LIMIT_BYTES + 1)
    output = Output()
    primitives.write_int32(output, 7)
    output.append_data(large)
    primitives.write_int32(output, 8)
    assert output.parts()[1] is large
    assert b"".join(output.parts()) == b"\0\0\0\x07" + large + b"\0\0\0\x08"


def test_zero_uuid_is_none() -> None:
    some = uuid4()
    assert primitives.read_uuid(bytes(16), 0) == (None, 16)
    assert primitives.read_uuid(some.bytes, 0) == (some, 16)
    assert written(primitives.write_uuid, None) == bytes(16)
