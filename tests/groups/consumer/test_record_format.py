"""The bytes of a consumer group's records, against those that Apache Kafka writes."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.consumer.records import records

from ottla.groups.consumer.member import ClassicMetadata
from ottla.groups.consumer.record_format import (
    decode,
    decode_key,
    decode_value,
    encode,
    encode_key,
    encode_value,
)
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    CurrentValue,
    GroupValue,
    Key,
    MemberValue,
    PartitionMetadataKey,
    PartitionMetadataValue,
    RegexKey,
    RegexValue,
    TargetValue,
    Value,
)
from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)

ONE = UUID(int=1)
ID = ONE.bytes
CLASSIC = ClassicMetadata(1, (("p", b"b"),))


@pytest.mark.parametrize(
    ("key", "content"),
    [
        (GroupKey("g"), b"\0\3\0\1g"),
        (PartitionMetadataKey("g"), b"\0\4\0\1g"),
        (MemberKey("g", "m"), b"\0\5\0\1g\0\1m"),
        (TargetEpochKey("g"), b"\0\6\0\1g"),
        (TargetKey("g", "m"), b"\0\7\0\1g\0\1m"),
        (CurrentKey("g", "m"), b"\0\x08\0\1g\0\1m"),
        (RegexKey("g", "a.*"), b"\0\x10\0\1g\0\3a.*"),
    ],
)
def test_keys_have_kafkas_bytes(key: Key, content: bytes) -> None:
    assert encode_key(key) == content
    assert decode_key(content) == key
    assert type(decode_key(content)) is type(key)
    assert decode(content, None) == ConsumerRecord(key, None)


@pytest.mark.parametrize(
    ("key", "value", "content"),
    [
        (GroupKey("g"), GroupValue(5), b"\0\0" + b"\0\0\0\5" + b"\0"),
        (GroupKey("g"), GroupValue(5, 7), b"\0\0\0\0\0\5" + b"\1\0\x08\0\0\0\0\0\0\0\7"),
        (TargetEpochKey("g"), TargetEpochValue(5), b"\0\0\0\0\0\5\0"),
        (TargetEpochKey("g"), TargetEpochValue(5, 9), b"\0\0\0\0\0\5\1\0\x08\0\0\0\0\0\0\0\x09"),
        (TargetKey("g", "m"), TargetValue({}), b"\0\0\1\0"),
        (
            TargetKey("g", "m"),
            TargetValue({ONE: frozenset((2, 0))}),
            b"\0\0\2" + ID + b"\3\0\0\0\0\0\0\0\2\0" + b"\0",
        ),
        (
            CurrentKey("g", "m"),
            CurrentValue(5, 4, 1, {ONE: {3: 2}}, {}),
            b"\0\0\0\0\0\5\0\0\0\4\1"
            + (b"\2" + ID + b"\2\0\0\0\3" + b"\1\0\5\2\0\0\0\2")
            + b"\1"
            + b"\0",
        ),
        (
            RegexKey("g", "a.*"),
            RegexValue(("ab",), 3, 9),
            b"\0\0\2\3ab" + bytes(7) + b"\3" + bytes(7) + b"\x09\0",
        ),
        (
            MemberKey("g", "m"),
            MemberValue(None, "r", "c", "/h", ("t",), "", 60_000, None),
            b"\0\0\0\2r\2c\3/h\2\2t\1\0\0\xea\x60\0\0",
        ),
        (
            MemberKey("g", "m"),
            MemberValue("i", None, "", "", (), None, -1, "range", CLASSIC),
            b"\0\0\2i\0\1\1\1\0\xff\xff\xff\xff\6range" + b"\1\0\x0c" + b"\1\0\0\0\1\2\2p\2b\0\0",
        ),
    ],
)  # fmt: skip
def test_values_have_kafkas_bytes(key: Key, value: Value, content: bytes) -> None:
    assert encode_value(value) == content
    assert decode_value(key, content) == value


@given(records)
def test_what_was_written_is_read(record: ConsumerRecord) -> None:
    again = decode(*encode(record))
    assert again == record
    assert again is not None
    assert [type(part) for part in again] == [type(part) for part in record]


@given(st.binary(max_size=40), st.binary(max_size=80))
def test_other_bytes_are_refused(key: bytes, value: bytes) -> None:
    with suppress(ValueError):
        decode(key, value)


def test_records_before_kafka_4_3_have_no_assignment_epochs() -> None:
    topic = b"\2" + ID + b"\2\0\0\0\3\0"
    content = b"\0\0" + b"\0\0\0\5" + b"\0\0\0\4" + b"\0" + topic + b"\1" + b"\0"
    assert decode_value(CurrentKey("g", "m"), content) == CurrentValue(5, 4, 0, {ONE: {3: 5}}, {})
    left = content.replace(b"\0\0\0\5", b"\xff\xff\xff\xfe")
    value = decode_value(CurrentKey("g", "m"), left)
    assert isinstance(value, CurrentValue)
    assert value.assigned == {ONE: {3: 0}}


def test_the_topics_that_kafka_4_0_wrote_only_count_as_there() -> None:
    key = PartitionMetadataKey("g")
    assert decode_value(key, b"\0\0\2" + ID + b"\2t\0\0\0\3\1\0\0") == PartitionMetadataValue()
    assert decode_value(key, None) is None


def test_other_keys_and_versions() -> None:
    assert decode(b"\0\2\0\1g", b"\0\3") is None
    with pytest.raises(ValueError, match="version 1"):
        decode(b"\0\3\0\1g", b"\0\1\0\0\0\5\0")
