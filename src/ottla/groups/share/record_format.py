"""The bytes of a share group's records, as Apache Kafka's group coordinator has them.

A key begins with its kind (int16), a value with its version (int16, always 0); values are flexible
(compact strings and arrays, tagged fields):

    key 10  group, member      value  rack?, client id, client host, topics[]
    key 11  group              value  epoch int32, metadata hash int64
    key 12  group              value  assignment epoch int32; tag 0: its time int64
    key 13  group, member      value  topics[]  id uuid, partitions[] int32
    key 14  group, member      value  epoch int32, previous epoch int32, state int8,
                                      assigned[]  id uuid, partitions[] int32
    key 15  group              value  initializing[], initialized[]  id uuid, name,
                                      partitions[] int32; deleting[]  id uuid, name

Message definitions: ShareGroup…Key.json and …Value.json of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ottla.groups.consumer.assignors.spec import java_order
from ottla.groups.consumer.record_format import (
    read_numbers,
    read_partitions,
    read_strings,
    read_tagged_number,
    tagged_number,
    write_numbers,
    write_partitions,
    write_strings,
)
from ottla.groups.newer_records import NewerRecords
from ottla.groups.newer_stored import (
    NO_TIMESTAMP,
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
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
    StateTopics,
    TargetValue,
    Value,
)
from ottla.shards.encoding import Reader, Writer

KEY_KINDS: Final[dict[int, type[Key]]] = {
    10: MemberKey,
    11: GroupKey,
    12: TargetEpochKey,
    13: TargetKey,
    14: CurrentKey,
    15: StatesKey,
}


def _write_value(writer: Writer, value: Value) -> None:
    tags: dict[int, bytes] = {}
    match value:
        case GroupValue(epoch, metadata_hash):
            writer.int32(epoch)
            writer.int64(metadata_hash)
        case MemberValue(rack_id, client_id, client_host, topics):
            writer.nullable_compact_string(rack_id)
            writer.compact_string(client_id)
            writer.compact_string(client_host)
            write_strings(writer, topics)
        case TargetEpochValue(epoch, timestamp_ms):
            writer.int32(epoch)
            tags = tagged_number(timestamp_ms)
        case TargetValue(partitions):
            write_partitions(writer, partitions)
        case CurrentValue(epoch, previous_epoch, state, assigned):
            writer.int32(epoch)
            writer.int32(previous_epoch)
            writer.int8(state)
            write_partitions(writer, assigned)
        case StatesValue():
            _write_states(writer, value)
    writer.tagged_fields(tags)


def _write_states(writer: Writer, value: StatesValue) -> None:
    for topics in (value.initializing, value.initialized):
        writer.compact_array_size(len(topics))
        for topic_id in sorted(topics, key=java_order):
            writer.parts.append(topic_id.bytes)
            writer.compact_string(topics[topic_id].name)
            write_numbers(writer, sorted(topics[topic_id].partitions))
            writer.tagged_fields({})
    writer.compact_array_size(len(value.deleting))
    for topic_id in sorted(value.deleting, key=java_order):
        writer.parts.append(topic_id.bytes)
        writer.compact_string(value.deleting[topic_id])
        writer.tagged_fields({})


def _read_value(key: Key, reader: Reader) -> Value:
    match key:
        case GroupKey():
            return GroupValue(reader.int32(), reader.int64())
        case MemberKey():
            return MemberValue(
                reader.nullable_string(compact=True),
                reader.string(compact=True),
                reader.string(compact=True),
                read_strings(reader),
            )
        case TargetEpochKey():
            return TargetEpochValue(reader.int32(), read_tagged_number(reader, NO_TIMESTAMP))
        case TargetKey():
            return TargetValue(read_partitions(reader))
        case CurrentKey():
            return CurrentValue(
                reader.int32(), reader.int32(), reader.int8(), read_partitions(reader)
            )
        case StatesKey():
            return StatesValue(_read_topics(reader), _read_topics(reader), _read_names(reader))


def _read_topics(reader: Reader) -> StateTopics:
    topics: dict[UUID, StateTopic] = {}
    for _ in range(reader.array_size(compact=True)):
        topic_id, name = reader.uuid(), reader.string(compact=True)
        topics[topic_id] = StateTopic(name, frozenset(read_numbers(reader)))
        reader.tagged_fields()
    return topics


def _read_names(reader: Reader) -> dict[UUID, str]:
    names: dict[UUID, str] = {}
    for _ in range(reader.array_size(compact=True)):
        topic_id = reader.uuid()
        names[topic_id] = reader.string(compact=True)
        reader.tagged_fields()
    return names


_FORMAT: Final = NewerRecords[Key, Value, ShareRecord](
    KEY_KINDS, ShareRecord, _write_value, _read_value
)
encode: Final = _FORMAT.encode
decode: Final = _FORMAT.decode
encode_key: Final = _FORMAT.encode_key
decode_key: Final = _FORMAT.decode_key
encode_value: Final = _FORMAT.encode_value
decode_value: Final = _FORMAT.decode_value
