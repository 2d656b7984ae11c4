"""The bytes of a streams group's records; Apache Kafka decodes them in
`tests/system/test_streams_groups_with_kafkas_tools.py`.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.streams.records import records

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
from ottla.groups.streams.member import Endpoint
from ottla.groups.streams.record_format import (
    decode,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from ottla.groups.streams.stored import (
    CurrentValue,
    GroupValue,
    Key,
    MemberValue,
    StreamsRecord,
    TargetValue,
    TopologyKey,
    TopologyValue,
    Value,
)
from ottla.groups.streams.tasks import HeldTasks, Tasks
from ottla.groups.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology


@pytest.mark.parametrize(
    ("key", "content"),
    [
        (GroupKey("g"), b"\0\x11\0\1g"),
        (MemberKey("g", "m"), b"\0\x13\0\1g\0\1m"),
        (TargetEpochKey("g"), b"\0\x14\0\1g"),
        (TargetKey("g", "m"), b"\0\x15\0\1g\0\1m"),
        (CurrentKey("g", "m"), b"\0\x16\0\1g\0\1m"),
        (TopologyKey("g"), b"\0\x17\0\1g"),
    ],
)
def test_keys_have_kafkas_bytes(key: Key, content: bytes) -> None:
    assert encode_key(key) == content
    assert decode_key(content) == key
    assert decode(content, None) == StreamsRecord(key, None)


FIVE = b"\0\0\0\5"
ONE_ACTIVE = b"\x02\x020\x03\0\0\0\0\0\0\0\1" + b"\1\0\x09\x03\0\0\0\3\0\0\0\4"
TOPOLOGY = Topology(
    0,
    (
        Subtopology(
            "0",
            ("s",),
            (),
            (TopicInfo("c", 0, 1, (("k", "v"),)),),
            ("r",),
            (),
            (CopartitionGroup((0,), (), (1, 2)),),
        ),
    ),
)


@pytest.mark.parametrize(
    ("key", "value", "content"),
    [
        (GroupKey("g"), GroupValue(5), b"\0\0" + FIVE + b"\0" * 8 + b"\0"),
        (
            GroupKey("g"),
            GroupValue(5, 1, 0, (("n", "2"),)),
            b"\0\0" + FIVE + b"\0" * 7 + b"\1" + b"\2" + b"\0\4\0\0\0\0" + b"\1\6\2\2n\x022\0",
        ),
        (
            MemberKey("g", "m"),
            MemberValue(None, "r", "c", "/h", 7, 0, "p", Endpoint("e", 65_535), (("z", "1"),)),
            b"\0\0\0\2r\2c\3/h\0\0\0\7\0\0\0\0\2p\1\2e\xff\xff\0\2\2z\x021\0\0",
        ),
        (
            MemberKey("g", "m"),
            MemberValue(None, None, "c", "/h", 7, 0, "p", None, ()),
            b"\0\0\0\0\2c\3/h\0\0\0\7\0\0\0\0\2p\xff\1\0",
        ),
        (TargetEpochKey("g"), TargetEpochValue(5), b"\0\0" + FIVE + b"\0"),
        (
            TargetEpochKey("g"),
            TargetEpochValue(5, 9),
            b"\0\0" + FIVE + b"\1\0\x08" + b"\0" * 7 + b"\x09",
        ),
        (
            TargetKey("g", "m"),
            TargetValue(Tasks({"0": frozenset((1, 0))}, {}, {})),
            b"\0\0\x02\x020\x03\0\0\0\0\0\0\0\1\0\1\1\0",
        ),
        (
            CurrentKey("g", "m"),
            CurrentValue(5, 4, 3, HeldTasks({"0": {1: 4, 0: 3}}), HeldTasks()),
            b"\0\0" + FIVE + b"\0\0\0\4\3" + ONE_ACTIVE + b"\1\1" + b"\1\1\1" + b"\0",
        ),
        (
            TopologyKey("g"),
            TopologyValue(TOPOLOGY),
            b"\0\0\0\0\0\0\2\x020\2\2s\1\2\2c\0\0\0\0\0\1\2\2k\2v\0\0\2\2r\1\2\2\0\0\1\3\0\1\0\2\0\0\0",
        ),
    ],
)
def test_values_have_kafkas_bytes(key: Key, value: Value, content: bytes) -> None:
    assert encode_value(value) == content
    assert decode_value(key, content) == value


def test_tasks_without_epochs_count_as_assigned_in_the_members() -> None:
    without = b"\x02\x020\x02\0\0\0\7\0"
    null = b"\x02\x020\x02\0\0\0\7\1\0\1\0"
    for active in (without, null):
        content = b"\0\0" + FIVE + FIVE + b"\1" + active + b"\1\1" + b"\1\1\1" + b"\0"
        value = decode_value(CurrentKey("g", "m"), content)
        assert isinstance(value, CurrentValue)
        assert value.assigned.active == {"0": {7: 5}}


def test_null_settings_are_none() -> None:
    content = b"\0\0" + FIVE + b"\0" * 8 + b"\1\1\1\0"
    assert decode_value(GroupKey("g"), content) == GroupValue(5)


@given(records)
def test_every_record_is_read_back(record: StreamsRecord) -> None:
    assert decode_any(*encode_any(record)) == record


@given(records, st.data())
def test_damaged_bytes_are_refused(record: StreamsRecord, data: st.DataObject) -> None:
    key, value = encode_any(record)
    assert value is not None
    damaged = bytearray(value)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        decode_any(key, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


def test_a_later_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 1 of the value of GroupKey"):
        decode_value(GroupKey("g"), b"\0\1")
