"""The bytes of a share group's records, against those that Apache Kafka writes."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.share.records import records

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)
from ottla.groups.records import decode as decode_any
from ottla.groups.records import encode as encode_any
from ottla.groups.share.record_format import (
    decode,
    decode_key,
    decode_value,
    encode,
    encode_key,
    encode_value,
)
from ottla.groups.share.stored import (
    CurrentValue,
    GroupValue,
    Key,
    MemberValue,
    ShareRecord,
    StatesKey,
    StatesValue,
    StateTopic,
    TargetValue,
    Value,
)

ID = bytes(range(16))
ONE = UUID(bytes=ID)


@pytest.mark.parametrize(
    ("key", "content"),
    [
        (MemberKey("g", "m"), b"\0\x0a\0\1g\0\1m"),
        (GroupKey("g"), b"\0\x0b\0\1g"),
        (TargetEpochKey("g"), b"\0\x0c\0\1g"),
        (TargetKey("g", "m"), b"\0\x0d\0\1g\0\1m"),
        (CurrentKey("g", "m"), b"\0\x0e\0\1g\0\1m"),
        (StatesKey("g"), b"\0\x0f\0\1g"),
    ],
)
def test_keys_have_kafkas_bytes(key: Key, content: bytes) -> None:
    assert encode_key(key) == content
    assert decode_key(content) == key
    assert decode(content, None) == ShareRecord(key, None)


@pytest.mark.parametrize(
    ("key", "value", "content"),
    [
        (GroupKey("g"), GroupValue(5, 7), b"\0\0" + b"\0\0\0\5" + b"\0\0\0\0\0\0\0\7" + b"\0"),
        (
            MemberKey("g", "m"),
            MemberValue("r", "c", "/h", ("a", "b")),
            b"\0\0" + b"\2r" + b"\2c" + b"\3/h" + b"\3\2a\2b" + b"\0",
        ),
        (MemberKey("g", "m"), MemberValue(None, "", "", ()), b"\0\0" + b"\0\1\1\1" + b"\0"),
        (TargetEpochKey("g"), TargetEpochValue(6), b"\0\0" + b"\0\0\0\6" + b"\0"),
        (
            TargetEpochKey("g"),
            TargetEpochValue(6, 9),
            b"\0\0" + b"\0\0\0\6" + b"\1\0\x08" + b"\0\0\0\0\0\0\0\x09",
        ),
        (
            TargetKey("g", "m"),
            TargetValue({ONE: frozenset({1, 0})}),
            b"\0\0" + b"\2" + ID + b"\3\0\0\0\0\0\0\0\1" + b"\0" + b"\0",
        ),
        (
            CurrentKey("g", "m"),
            CurrentValue(6, 5, 0, {ONE: frozenset({2})}),
            b"\0\0" + b"\0\0\0\6\0\0\0\5\0" + b"\2" + ID + b"\2\0\0\0\2" + b"\0" + b"\0",
        ),
        (
            StatesKey("g"),
            StatesValue({ONE: StateTopic("t", frozenset({3}))}, {}, {ONE: "u"}),
            b"\0\0" + b"\2" + ID + b"\2t" + b"\2\0\0\0\3" + b"\0"
            + b"\1" + b"\2" + ID + b"\2u" + b"\0" + b"\0",
        ),
    ],
)  # fmt: skip
def test_values_have_kafkas_bytes(key: Key, value: Value, content: bytes) -> None:
    assert encode_value(value) == content
    assert decode_value(key, content) == value


@given(records)
def test_what_was_written_is_read(record: ShareRecord) -> None:
    assert encode_any(record) == encode(record)
    again = decode_any(*encode(record))
    assert again == record
    assert again is not None
    assert [type(part) for part in again] == [type(part) for part in record]


@given(st.binary(max_size=40), st.binary(max_size=80))
def test_other_bytes_are_refused(key: bytes, value: bytes) -> None:
    with suppress(ValueError):
        decode(key, value)


def test_other_keys_and_versions() -> None:
    assert decode(b"\0\3\0\1g", b"\0\0") is None
    with pytest.raises(ValueError, match="version 1"):
        decode(b"\0\x0b\0\1g", b"\0\1\0\0\0\5\0")
