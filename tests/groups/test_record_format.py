"""The bytes of `__consumer_offsets`, against those that Apache Kafka writes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.record_format import decode_key, decode_value, encode_key, encode_value
from ottla.groups.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET_KEY = OffsetCommitKey("g", "topic", 2)
GROUP_KEY = GroupMetadataKey("g")
TOPIC_ID = UUID("00000000-0000-0001-0000-000000000002")

texts = st.text(max_size=40).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
offset_values = st.builds(
    OffsetCommitValue,
    int64,
    int32,
    texts,
    int64,
    st.just(-1),
    st.none() | st.uuids().filter(lambda value: value.int != 0),
)
members = st.builds(
    MemberMetadata,
    texts,
    st.none() | texts,
    texts,
    texts,
    st.integers(0, 2**31 - 1),
    int32,
    st.binary(max_size=50),
    st.binary(max_size=50),
)
group_values = st.builds(
    GroupMetadataValue,
    texts,
    int32,
    st.none() | texts,
    st.none() | texts,
    int64,
    st.lists(members, max_size=4).map(tuple),
)


def test_keys_have_kafkas_bytes() -> None:
    assert encode_key(OFFSET_KEY) == b"\0\1\0\1g\0\5topic\0\0\0\2"
    assert encode_key(GROUP_KEY) == b"\0\2\0\1g"


def test_offset_is_written_as_version_4() -> None:
    value = OffsetCommitValue(7, 3, "note", 1_000, topic_id=TOPIC_ID)
    assert encode_value(value) == (
        b"\0\4" + (7).to_bytes(8, "big") + b"\0\0\0\3" + b"\5note" + (1000).to_bytes(8, "big")
        + b"\1\0\x10" + TOPIC_ID.bytes
    )  # fmt: skip
    assert decode_value(OFFSET_KEY, encode_value(value)) == value


def test_offset_with_an_expire_time_is_written_as_version_1() -> None:
    value = OffsetCommitValue(7, -1, "note", 1_000, 2_000)
    content = encode_value(value)
    assert content == (
        b"\0\1" + (7).to_bytes(8, "big") + b"\0\4note" + (1000).to_bytes(8, "big")
        + (2000).to_bytes(8, "big")
    )  # fmt: skip
    assert decode_value(OFFSET_KEY, content) == value


@pytest.mark.parametrize(
    ("content", "leader_epoch"),
    [
        (b"\0\0" + bytes(7) + b"\7\0\4note" + bytes(6) + b"\3\xe8", -1),
        (b"\0\2" + bytes(7) + b"\7\0\4note" + bytes(6) + b"\3\xe8", -1),
        (b"\0\3" + bytes(7) + b"\7\0\0\0\3\0\4note" + bytes(6) + b"\3\xe8", 3),
    ],
    ids=["version 0", "version 2", "version 3"],
)
def test_older_offsets_are_read(content: bytes, leader_epoch: int) -> None:
    assert decode_value(OFFSET_KEY, content) == OffsetCommitValue(7, leader_epoch, "note", 1_000)


def test_group_is_written_as_version_3() -> None:
    member = MemberMetadata("m-1", None, "client", "/127.0.0.1", 60_000, 10_000, b"sub", b"own")
    value = GroupMetadataValue("consumer", 5, "range", "m-1", 1_000, (member,))
    content = encode_value(value)
    assert content == (
        b"\0\3" + b"\0\x08consumer" + b"\0\0\0\5" + b"\0\5range" + b"\0\3m-1"
        + (1000).to_bytes(8, "big") + b"\0\0\0\1"
        + b"\0\3m-1" + b"\xff\xff" + b"\0\6client" + b"\0\x0a/127.0.0.1"
        + (60_000).to_bytes(4, "big") + (10_000).to_bytes(4, "big")
        + b"\0\0\0\3sub" + b"\0\0\0\3own"
    )  # fmt: skip
    assert decode_value(GROUP_KEY, content) == value


def test_group_of_version_0_has_one_timeout_for_both() -> None:
    content = (
        b"\0\0" + b"\0\x08consumer" + b"\0\0\0\5" + b"\0\5range" + b"\0\3m-1" + b"\0\0\0\1"
        + b"\0\3m-1" + b"\0\1c" + b"\0\1h" + b"\0\0\x27\x10" + b"\0\0\0\0" + b"\0\0\0\0"
    )  # fmt: skip
    value = decode_value(GROUP_KEY, content)
    assert isinstance(value, GroupMetadataValue)
    assert value.current_state_timestamp_ms == -1
    assert value.members[0].rebalance_timeout_ms == value.members[0].session_timeout_ms == 10_000


def test_group_of_version_4_is_read() -> None:
    content = (
        b"\0\4" + b"\x09consumer" + b"\0\0\0\5" + b"\6range" + b"\0" + bytes(8) + b"\2"
        + b"\4m-1" + b"\0" + b"\2c" + b"\2h" + bytes(8) + b"\3ab" + b"\1" + b"\0" + b"\0"
    )  # fmt: skip
    value = decode_value(GROUP_KEY, content)
    assert isinstance(value, GroupMetadataValue)
    assert (value.leader, value.members[0].subscription) == (None, b"ab")


def test_tombstones_and_other_kinds_of_keys() -> None:
    assert encode_value(None) is None
    assert decode_value(OFFSET_KEY, None) is None
    assert decode_key(b"\0\0\0\1g\0\5topic\0\0\0\2") == OFFSET_KEY
    assert decode_key(b"\0\3\0\1g") is None


@given(texts, texts, st.integers(0, 2**31 - 1))
def test_keys_come_back(group: str, topic: str, partition: int) -> None:
    for key in (OffsetCommitKey(group, topic, partition), GroupMetadataKey(group)):
        assert decode_key(encode_key(key)) == key


@given(offset_values)
def test_offsets_come_back(value: OffsetCommitValue) -> None:
    assert decode_value(OFFSET_KEY, encode_value(value)) == value


@given(group_values)
def test_groups_come_back(value: GroupMetadataValue) -> None:
    assert decode_value(GROUP_KEY, encode_value(value)) == value


@given(st.binary(max_size=80), st.integers(0, 5))
def test_any_bytes_are_read_or_refused(content: bytes, version: int) -> None:
    """Anyone may write to the topic; nothing but ValueError may come of it."""
    for key in (OFFSET_KEY, GROUP_KEY):
        try:
            decode_value(key, version.to_bytes(2, "big") + content)
        except ValueError:
            continue
    try:
        decode_key(version.to_bytes(2, "big") + content)
    except ValueError:
        return


@given(group_values, st.data())
def test_a_value_cut_short_is_refused(value: GroupMetadataValue, data: st.DataObject) -> None:
    content = encode_value(value)
    assert content is not None
    end = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(ValueError, match=r"bytes|ends at|array"):
        decode_value(GROUP_KEY, content[:end])
