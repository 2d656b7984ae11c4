"""The bytes of a consumer group's records, as Apache Kafka's group coordinator has them.

A key begins with its kind (int16), a value with its version (int16, always 0); values are flexible
(compact strings and arrays, tagged fields):

    key 3   group              value  epoch int32; tag 0: metadata hash int64
    key 4   group              value  read as "there is one", written as a tombstone only
    key 5   group, member      value  instance?, rack?, client id, client host, topics[], regex?,
                                      rebalance timeout int32, assignor?;
                                      tag 0: classic?  session timeout int32,
                                      protocols[] name, bytes
    key 6   group              value  assignment epoch int32; tag 0: its time int64
    key 7   group, member      value  topics[]  id uuid, partitions[] int32
    key 8   group, member      value  epoch int32, previous epoch int32, state int8,
                                      assigned[], pending revocation[]  id uuid, partitions[] int32;
                                      tag 0: assignment epochs[]? int32, one a partition
    key 16  group, regex       value  topics[], version int64, time int64

Message definitions: ConsumerGroup…Key.json and …Value.json of Apache Kafka 4.3. What 4.4 adds is a
tag, which is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions, java_order
from ottla.groups.consumer.member import ClassicMetadata, OwnedPartitions
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
from ottla.shards.encoding import Reader, Writer

KEY_KINDS: Final[dict[int, type[Key]]] = {
    3: GroupKey,
    4: PartitionMetadataKey,
    5: MemberKey,
    6: TargetEpochKey,
    7: TargetKey,
    8: CurrentKey,
    16: RegexKey,
}
_TAG: Final = 0
"""Every value has one tag at most that we write."""
_PRESENT: Final = 1


def _write_value(writer: Writer, value: Value) -> None:
    match value:
        case GroupValue(epoch, metadata_hash):
            writer.int32(epoch)
            writer.tagged_fields(tagged_number(metadata_hash))
        case MemberValue():
            _write_member(writer, value)
        case TargetEpochValue(epoch, timestamp_ms):
            writer.int32(epoch)
            writer.tagged_fields(tagged_number(timestamp_ms))
        case TargetValue(partitions):
            write_partitions(writer, partitions)
            writer.tagged_fields({})
        case CurrentValue():
            writer.int32(value.epoch)
            writer.int32(value.previous_epoch)
            writer.int8(value.state)
            _write_owned(writer, value.assigned)
            _write_owned(writer, value.pending_revocation)
            writer.tagged_fields({})
        case RegexValue(topics, version, timestamp_ms):
            write_strings(writer, topics)
            writer.int64(version)
            writer.int64(timestamp_ms)
            writer.tagged_fields({})
        case PartitionMetadataValue():
            raise AssertionError("only removed, never written")


def tagged_number(value: int) -> dict[int, bytes]:
    """The tagged field of a number, which is left out where it is 0."""
    if value == 0:
        return {}
    writer = Writer()
    writer.int64(value)
    return {_TAG: writer.content()}


def write_strings(writer: Writer, texts: tuple[str, ...]) -> None:
    """An array of strings."""
    writer.compact_array_size(len(texts))
    for text in texts:
        writer.compact_string(text)


def _write_member(writer: Writer, value: MemberValue) -> None:
    writer.nullable_compact_string(value.instance_id)
    writer.nullable_compact_string(value.rack_id)
    writer.compact_string(value.client_id)
    writer.compact_string(value.client_host)
    write_strings(writer, value.subscribed_topics)
    writer.nullable_compact_string(value.subscribed_regex)
    writer.int32(value.rebalance_timeout_ms)
    writer.nullable_compact_string(value.server_assignor)
    if value.classic is None:
        writer.tagged_fields({})
        return
    classic = Writer()
    classic.int8(_PRESENT)
    classic.int32(value.classic.session_timeout_ms)
    classic.compact_array_size(len(value.classic.protocols))
    for name, metadata in value.classic.protocols:
        classic.compact_string(name)
        classic.compact_byte_string(metadata)
        classic.tagged_fields({})
    classic.tagged_fields({})
    writer.tagged_fields({_TAG: classic.content()})


def _write_topic(writer: Writer, topic: UUID, partitions: Iterable[int]) -> None:
    writer.parts.append(topic.bytes)
    write_numbers(writer, list(partitions))


def write_partitions(writer: Writer, partitions: Partitions) -> None:
    """Topics with their partitions, in Java's order."""
    writer.compact_array_size(len(partitions))
    for topic in sorted(partitions, key=java_order):
        _write_topic(writer, topic, sorted(partitions[topic]))
        writer.tagged_fields({})


def write_numbers(writer: Writer, numbers: list[int]) -> None:
    """An array of int32."""
    writer.compact_array_size(len(numbers))
    for number in numbers:
        writer.int32(number)


def _write_owned(writer: Writer, owned: OwnedPartitions) -> None:
    writer.compact_array_size(len(owned))
    for topic in sorted(owned, key=java_order):
        partitions = sorted(owned[topic])
        _write_topic(writer, topic, partitions)
        epochs = Writer()
        write_numbers(epochs, [owned[topic][partition] for partition in partitions])
        writer.tagged_fields({_TAG: epochs.content()})


def _read_value(key: Key, reader: Reader) -> Value:
    match key:
        case GroupKey():
            return GroupValue(reader.int32(), read_tagged_number(reader, 0))
        case PartitionMetadataKey():
            return PartitionMetadataValue()
        case MemberKey():
            return _read_member(reader)
        case TargetEpochKey():
            return TargetEpochValue(reader.int32(), read_tagged_number(reader, NO_TIMESTAMP))
        case TargetKey():
            return TargetValue(read_partitions(reader))
        case CurrentKey():
            return _read_current(reader)
        case RegexKey():
            return RegexValue(read_strings(reader), reader.int64(), reader.int64())


def read_tagged_number(reader: Reader, default: int) -> int:
    """The number in the tagged field; the default where there is none."""
    content = reader.tagged_fields().get(_TAG)
    return default if content is None else Reader(content).int64()


def read_strings(reader: Reader) -> tuple[str, ...]:
    """An array of strings."""
    return tuple(reader.string(compact=True) for _ in range(reader.array_size(compact=True)))


def _read_member(reader: Reader) -> MemberValue:
    value = MemberValue(
        reader.nullable_string(compact=True),
        reader.nullable_string(compact=True),
        reader.string(compact=True),
        reader.string(compact=True),
        read_strings(reader),
        reader.nullable_string(compact=True),
        reader.int32(),
        reader.nullable_string(compact=True),
    )
    content = reader.tagged_fields().get(_TAG)
    return value if content is None else value._replace(classic=_read_classic(Reader(content)))


def _read_classic(reader: Reader) -> ClassicMetadata | None:
    if reader.int8() < 0:
        return None
    session_timeout_ms = reader.int32()
    protocols = []
    for _ in range(reader.array_size(compact=True)):
        protocols.append((reader.string(compact=True), reader.byte_string(compact=True)))
        reader.tagged_fields()
    return ClassicMetadata(session_timeout_ms, tuple(protocols))


def read_numbers(reader: Reader) -> list[int]:
    """An array of int32."""
    return [reader.int32() for _ in range(reader.array_size(compact=True))]


def read_partitions(reader: Reader) -> Partitions:
    """Topics with their partitions."""
    partitions: dict[UUID, frozenset[int]] = {}
    for _ in range(reader.array_size(compact=True)):
        topic = reader.uuid()
        partitions[topic] = frozenset(read_numbers(reader))
        reader.tagged_fields()
    return partitions


def _read_current(reader: Reader) -> CurrentValue:
    epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
    return CurrentValue(
        epoch, previous_epoch, state, _read_owned(reader, epoch), _read_owned(reader, epoch)
    )


def _read_owned(reader: Reader, member_epoch: int) -> OwnedPartitions:
    """Before Kafka 4.3 there are no epochs: the partitions count as assigned in the member's."""
    owned: dict[UUID, dict[int, int]] = {}
    for _ in range(reader.array_size(compact=True)):
        topic = reader.uuid()
        partitions = read_numbers(reader)
        content = reader.tagged_fields().get(_TAG)
        # A null array has size 0 before its length of one less.
        epochs = [] if content is None or content[:1] == b"\0" else read_numbers(Reader(content))
        if len(epochs) != len(partitions):
            epochs = [max(member_epoch, 0)] * len(partitions)
        owned[topic] = dict(zip(partitions, epochs, strict=True))
    return owned


_FORMAT: Final = NewerRecords[Key, Value, ConsumerRecord](
    KEY_KINDS, ConsumerRecord, _write_value, _read_value
)
encode: Final = _FORMAT.encode
decode: Final = _FORMAT.decode
encode_key: Final = _FORMAT.encode_key
decode_key: Final = _FORMAT.decode_key
encode_value: Final = _FORMAT.encode_value
decode_value: Final = _FORMAT.decode_value
