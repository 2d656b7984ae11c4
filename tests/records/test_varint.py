import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.errors import InvalidRecordError
from ottla.records.varint import decode_varint, encode_varint


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_known_values(value: int, expected: str) -> None:
    assert encode_varint(value).hex() == expected
    assert decode_varint(bytes.fromhex(expected), 0) == (value, len(expected) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_any_integer_round_trips_among_other_bytes(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)
    buffer = before + encoded + after
    assert decode_varint(buffer, len(before)) == (value, len(before) + len(encoded))


@pytest.mark.parametrize("buffer", [b"", b"\x80", b"\xff" * 9, b"\xff" * 11])
def test_an_integer_without_end_is_refused(buffer: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        decode_varint(buffer, 0)
