"""The bytes of `__share_group_state`."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.share.values import KEY, SNAPSHOT, UPDATE

from ottla.share.record_format import decode, encode
from ottla.share.stored import ShareKey, ShareRecord, Snapshot, Update

KEY_BYTES = "0001 67 00112233445566778899aabbccddeeff 00000003"
GOLDEN = [
    (
        SNAPSHOT,
        "0000",
        "0000 00000002 00000001 00000007 0000000000000005 0000018bcfe56800 0000018bcfe56801"
        " 03 0000000000000006 0000000000000007 02 0001 00 0000000000000009 000000000000000a 00 0002"
        " 00 01 00 04 00000002",
    ),
    (
        UPDATE,
        "0001",
        "0000 00000002 00000007 ffffffffffffffff"
        " 02 0000000000000006 0000000000000007 04 0005 00 00",
    ),
]


@pytest.mark.parametrize(("value", "kind", "content"), GOLDEN)
def test_records_are_those_of_apache_kafka(
    value: Snapshot | Update, kind: str, content: str
) -> None:
    record = ShareRecord(KEY, value)
    encoded = (bytes.fromhex(kind + KEY_BYTES), bytes.fromhex(content))
    assert encode(record) == encoded
    assert decode(*encoded) == record


def test_a_tombstone_has_no_value() -> None:
    record = ShareRecord(KEY, None)
    key, value = encode(record)
    assert (key[:2], value) == (b"\0\0", None)
    assert decode(key, value) == record


def test_other_keys_are_no_records() -> None:
    assert decode(b"\0\2", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (bytes.fromhex("0001" + KEY_BYTES), None),
        (bytes.fromhex("0000" + KEY_BYTES), b"\0\1"),
        (
            bytes.fromhex("0000" + KEY_BYTES),
            bytes.fromhex(GOLDEN[0][2].replace("02 0001", "01 0001")),
        ),
        (bytes.fromhex("0001" + KEY_BYTES), bytes.fromhex(GOLDEN[1][2])[:-4]),
    ],
)
def test_damaged_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ValueError):
        decode(key, value)


@given(st.binary(max_size=60), st.binary(max_size=90), st.sampled_from([0, 1]))
def test_any_bytes_are_decoded_or_refused(key: bytes, value: bytes, kind: int) -> None:
    with suppress(ValueError):
        decode(bytes((0, kind)) + key, value)


def test_group_ids_may_have_any_letters() -> None:
    record = ShareRecord(ShareKey("é:ß", UUID(int=7), 0), UPDATE)
    assert decode(*encode(record)) == record
