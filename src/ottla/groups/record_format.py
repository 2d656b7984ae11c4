"""The bytes of `__consumer_offsets`, as Apache Kafka's group coordinator writes and reads them.

A key begins with its kind (int16), a value with its version (int16):

    key 1 (0 in old logs)  group string, topic string, partition int32
      value 0   offset int64, metadata string, commit time int64
      value 1   offset, metadata, commit time, expire time int64
      value 2   offset, metadata, commit time
      value 3   offset, leader epoch int32, metadata, commit time
      value 4   as 3 with compact strings; tag 0: topic id (uuid)
    key 2                  group string
      value 0   protocol type string, generation int32, protocol string?, leader string?, members[]
      value 2   time of the state (int64) before the members
      member    id string, instance id string? (3), client id string, client host string,
                rebalance timeout int32 (1), session timeout int32, subscription and
                assignment bytes
      value 4   as 3 with compact strings, arrays and tags

We write what Kafka 4.3 writes: offsets as version 4 (as 1 where they carry an expire time), groups
as version 3. Other kinds of keys (KIP-848 and share groups) are left alone. Message definitions:
OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json, GroupMetadataValue.json.
A crash leaves whole records only: batches are cut at the first torn one.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.groups.stored import (
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
)
from ottla.shards.encoding import MAX_STRING_BYTES, Reader, Writer, unsigned_varint

_OLD_OFFSET_KEY: Final = 0
_OFFSET_KEY: Final = 1
_GROUP_KEY: Final = 2
_TOPIC_ID_TAG: Final = 0
_NEWEST_VALUE: Final = 4
# Offsets are most of what is written, so each is packed in few steps.
_KIND_AND_SIZE: Final = Struct(">hh")
_SIZE: Final = Struct(">h")
_PARTITION: Final = Struct(">i")
_VERSION_1: Final = Struct(">hqh")
_VERSION_4: Final = Struct(">hqi")
_TIME: Final = Struct(">q")
_TWO_TIMES: Final = Struct(">qq")
_ONE_TOPIC_ID: Final = bytes((1, _TOPIC_ID_TAG, 16))
"""How many tagged fields, the tag, its size."""


def encode(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """The record's key and value."""
    return encode_key(record.key), encode_value(record.value)


def decode(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """The record, or None for a key of a type that classic groups do not have.

    Raises ValueError for bytes that are no such record.
    """
    decoded = decode_key(key)
    return None if decoded is None else CoordinatorRecord(decoded, decode_value(decoded, value))


def encode_key(key: Key) -> bytes:
    """The key's bytes."""
    if isinstance(key, OffsetCommitKey):
        return _encode_offset_key(key)
    writer = Writer()
    writer.int16(_GROUP_KEY)
    writer.string(key.group)
    return writer.content()


def _encode_offset_key(key: OffsetCommitKey) -> bytes:
    group, topic = key.group.encode(), key.topic.encode()
    assert len(group) <= MAX_STRING_BYTES, "strings are checked before they are stored"
    return b"".join(
        (
            _KIND_AND_SIZE.pack(_OFFSET_KEY, len(group)),
            group,
            _SIZE.pack(len(topic)),
            topic,
            _PARTITION.pack(key.partition),
        )
    )


def encode_value(value: Value | None) -> bytes | None:
    """The value's bytes; None for a tombstone."""
    if value is None:
        return None
    if isinstance(value, OffsetCommitValue):
        return _encode_offset(value)
    writer = Writer()
    _write_group(writer, value)
    return writer.content()


def _encode_offset(value: OffsetCommitValue) -> bytes:
    metadata = value.metadata.encode()
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        # Only version 1 has room for it, at the price of leader epoch and topic id.
        head = _VERSION_1.pack(1, value.offset, len(metadata))
        times = _TWO_TIMES.pack(value.commit_timestamp_ms, value.expire_timestamp_ms)
        return b"".join((head, metadata, times))
    return b"".join(
        (
            _VERSION_4.pack(4, value.offset, value.leader_epoch),
            unsigned_varint(len(metadata) + 1),
            metadata,
            _TIME.pack(value.commit_timestamp_ms),
            b"\0" if value.topic_id is None else _ONE_TOPIC_ID + value.topic_id.bytes,
        )
    )


def _write_group(writer: Writer, value: GroupMetadataValue) -> None:
    writer.int16(3)
    writer.string(value.protocol_type)
    writer.int32(value.generation)
    writer.nullable_string(value.protocol)
    writer.nullable_string(value.leader)
    writer.int64(value.current_state_timestamp_ms)
    writer.int32(len(value.members))
    for member in value.members:
        writer.string(member.member_id)
        writer.nullable_string(member.group_instance_id)
        writer.string(member.client_id)
        writer.string(member.client_host)
        writer.int32(member.rebalance_timeout_ms)
        writer.int32(member.session_timeout_ms)
        writer.byte_string(member.subscription)
        writer.byte_string(member.assignment)


def decode_key(content: bytes) -> Key | None:
    """The key, or None where it is of a kind that classic groups do not have.

    Raises ValueError where the bytes are no key.
    """
    reader = Reader(content)
    kind = reader.int16()
    if kind in (_OLD_OFFSET_KEY, _OFFSET_KEY):
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if kind == _GROUP_KEY:
        return GroupMetadataKey(reader.string())
    return None


def decode_value(key: Key, content: bytes | None) -> Value | None:
    """The value that belongs to such a key; raises ValueError where the bytes are none."""
    if content is None:
        return None
    reader = Reader(content)
    version = reader.int16()
    if not 0 <= version <= _NEWEST_VALUE:
        raise ValueError(f"version {version} of the value of {type(key).__name__}")
    if isinstance(key, OffsetCommitKey):
        return _read_offset(reader, version)
    return _read_group(reader, version)


def _read_offset(reader: Reader, version: int) -> OffsetCommitValue:
    flexible = version >= 4
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NO_LEADER_EPOCH
    metadata = reader.string(flexible)
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NO_TIMESTAMP
    topic_id = None
    if flexible:
        content = reader.tagged_fields().get(_TOPIC_ID_TAG)
        topic_id = None if content is None or not any(content) else Reader(content).uuid()
    return OffsetCommitValue(
        offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id
    )


def _read_group(reader: Reader, version: int) -> GroupMetadataValue:
    flexible = version >= 4
    protocol_type = reader.string(flexible)
    generation = reader.int32()
    protocol = reader.nullable_string(flexible)
    leader = reader.nullable_string(flexible)
    timestamp_ms = reader.int64() if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(reader, version) for _ in range(reader.array_size(flexible)))
    return GroupMetadataValue(protocol_type, generation, protocol, leader, timestamp_ms, members)


def _read_member(reader: Reader, version: int) -> MemberMetadata:
    flexible = version >= 4
    member_id = reader.string(flexible)
    instance_id = reader.nullable_string(flexible) if version >= 3 else None
    client_id = reader.string(flexible)
    client_host = reader.string(flexible)
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription = reader.byte_string(flexible)
    assignment = reader.byte_string(flexible)
    if flexible:
        reader.tagged_fields()
    return MemberMetadata(
        member_id,
        instance_id,
        client_id,
        client_host,
        # Version 0 had one timeout for both.
        session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
