"""The bytes of a streams group's records, as Apache Kafka's group coordinator has them.

A key begins with its kind (int16), a value with its version (int16, always 0); values are flexible
(compact strings and arrays, tagged fields):

    key 17  group              value  epoch int32, metadata hash int64; tag 0: validated topology
                                      epoch int32; tag 1: settings[]?  name, value; tags 2 and 3:
                                      described and undescribable topology epoch int32
    key 19  group, member      value  instance?, rack?, client id, client host, rebalance timeout
                                      int32, topology epoch int32, process id,
                                      endpoint?  host, port uint16; client tags[]  name, value
    key 20  group              value  assignment epoch int32; tag 0: its time int64
    key 21  group, member      value  active[], standby[], warm-up[]  subtopology,
                                      partitions[] int32
    key 22  group, member      value  epoch int32, previous epoch int32, state int8,
                                      active[], standby[], warm-up[], the same three pending
                                      revocation; tag 0 of an active task: epochs[]? int32
    key 23  group              value  epoch int32, subtopologies[]  id, sources[], regexes[],
                                      changelogs[], sinks[], repartition sources[],
                                      copartition groups[]  three arrays of int16;
                                      a topic: name, partitions int32, factor int16,
                                      settings[]  name, value; tag 10,000, of Ottla: the
                                      topology's description (`description`)

Message definitions: StreamsGroup…Key.json and …Value.json of Apache Kafka 4.4. Key 18 was never in
a release that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.groups.consumer.record_format import (
    read_numbers,
    read_strings,
    read_tagged_number,
    tagged_number,
    write_numbers,
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
from ottla.groups.streams.member import Endpoint
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
from ottla.groups.streams.tasks import AssignedPartitions, HeldTasks, Partitions, Tasks
from ottla.groups.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from ottla.shards.encoding import Reader, Writer

KEY_KINDS: Final[dict[int, type[Key]]] = {
    17: GroupKey,
    19: MemberKey,
    20: TargetEpochKey,
    21: TargetKey,
    22: CurrentKey,
    23: TopologyKey,
}
_PRESENT: Final = 1
_ABSENT: Final = -1
_VALIDATED_TAG: Final = 0
_CONFIGS_TAG: Final = 1
_DESCRIBED_TAG: Final = 2
_UNDESCRIBABLE_TAG: Final = 3
_EPOCHS_TAG: Final = 0
_DESCRIPTION_TAG: Final = 10_000
"""Far from those that Kafka may add."""
NO_TOPOLOGY_EPOCH: Final = -1
"""The default of the tags with epochs."""


def _write_value(writer: Writer, value: Value) -> None:
    tags: dict[int, bytes] = {}
    match value:
        case GroupValue():
            writer.int32(value.epoch)
            writer.int64(value.metadata_hash)
            tags = _group_tags(value)
        case MemberValue():
            _write_member(writer, value)
        case TargetEpochValue(epoch, timestamp_ms):
            writer.int32(epoch)
            tags = tagged_number(timestamp_ms)
        case TargetValue(tasks):
            for partitions in tasks:
                _write_partitions(writer, partitions)
        case CurrentValue():
            writer.int32(value.epoch)
            writer.int32(value.previous_epoch)
            writer.int8(value.state)
            _write_held(writer, value.assigned)
            _write_held(writer, value.pending_revocation)
        case TopologyValue(topology, description):
            _write_topology(writer, topology)
            tags = {} if description is None else {_DESCRIPTION_TAG: description}
    writer.tagged_fields(tags)


def _group_tags(value: GroupValue) -> dict[int, bytes]:
    tags: dict[int, bytes] = {}
    for tag, epoch in (
        (_VALIDATED_TAG, value.validated_topology_epoch),
        (_DESCRIBED_TAG, value.described_epoch),
        (_UNDESCRIBABLE_TAG, value.undescribable_epoch),
    ):
        if epoch != NO_TOPOLOGY_EPOCH:
            writer = Writer()
            writer.int32(epoch)
            tags[tag] = writer.content()
    if value.assignment_configs is not None:
        writer = Writer()
        _write_pairs(writer, value.assignment_configs)
        tags[_CONFIGS_TAG] = writer.content()
    return tags


def _write_pairs(writer: Writer, pairs: tuple[tuple[str, str], ...]) -> None:
    writer.compact_array_size(len(pairs))
    for name, value in pairs:
        writer.compact_string(name)
        writer.compact_string(value)
        writer.tagged_fields({})


def _write_member(writer: Writer, value: MemberValue) -> None:
    writer.nullable_compact_string(value.instance_id)
    writer.nullable_compact_string(value.rack_id)
    writer.compact_string(value.client_id)
    writer.compact_string(value.client_host)
    writer.int32(value.rebalance_timeout_ms)
    writer.int32(value.topology_epoch)
    writer.compact_string(value.process_id)
    if value.endpoint is None:
        writer.int8(_ABSENT)
    else:
        writer.int8(_PRESENT)
        writer.compact_string(value.endpoint.host)
        writer.parts.append(value.endpoint.port.to_bytes(2, "big"))
        writer.tagged_fields({})
    _write_pairs(writer, value.client_tags)


def _write_partitions(writer: Writer, partitions: Partitions) -> None:
    writer.compact_array_size(len(partitions))
    for name in sorted(partitions):
        writer.compact_string(name)
        write_numbers(writer, sorted(partitions[name]))
        writer.tagged_fields({})


def _write_held(writer: Writer, held: HeldTasks) -> None:
    writer.compact_array_size(len(held.active))
    for name in sorted(held.active):
        numbers = sorted(held.active[name])
        writer.compact_string(name)
        write_numbers(writer, numbers)
        epochs = Writer()
        write_numbers(epochs, [held.active[name][number] for number in numbers])
        writer.tagged_fields({_EPOCHS_TAG: epochs.content()})
    _write_partitions(writer, held.standby)
    _write_partitions(writer, held.warmup)


def _write_topology(writer: Writer, topology: Topology) -> None:
    writer.int32(topology.epoch)
    writer.compact_array_size(len(topology.subtopologies))
    for each in topology.subtopologies:
        writer.compact_string(each.id)
        write_strings(writer, each.source_topics)
        write_strings(writer, each.source_topic_regexes)
        _write_infos(writer, each.changelog_topics)
        write_strings(writer, each.repartition_sink_topics)
        _write_infos(writer, each.repartition_source_topics)
        writer.compact_array_size(len(each.copartition_groups))
        for group in each.copartition_groups:
            for positions in group:
                writer.compact_array_size(len(positions))
                for position in positions:
                    writer.int16(position)
            writer.tagged_fields({})
        writer.tagged_fields({})


def _write_infos(writer: Writer, infos: tuple[TopicInfo, ...]) -> None:
    writer.compact_array_size(len(infos))
    for info in infos:
        writer.compact_string(info.name)
        writer.int32(info.partitions)
        writer.int16(info.replication_factor)
        _write_pairs(writer, info.configs)
        writer.tagged_fields({})


def _read_value(key: Key, reader: Reader) -> Value:
    match key:
        case GroupKey():
            return _read_group(reader)
        case MemberKey():
            return _read_member(reader)
        case TargetEpochKey():
            return TargetEpochValue(reader.int32(), read_tagged_number(reader, NO_TIMESTAMP))
        case TargetKey():
            return TargetValue(Tasks(*(_read_partitions(reader) for _ in Tasks._fields)))
        case CurrentKey():
            epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
            held = _read_held(reader, epoch), _read_held(reader, epoch)
            return CurrentValue(epoch, previous_epoch, state, *held)
        case TopologyKey():
            topology = _read_topology(reader)
            return TopologyValue(topology, reader.tagged_fields().get(_DESCRIPTION_TAG))


def _read_group(reader: Reader) -> GroupValue:
    epoch, metadata_hash = reader.int32(), reader.int64()
    tags = reader.tagged_fields()
    configs = tags.get(_CONFIGS_TAG)
    return GroupValue(
        epoch,
        metadata_hash,
        _read_epoch(tags, _VALIDATED_TAG),
        None if configs is None or _is_null(configs) else _read_pairs(Reader(configs)),
        _read_epoch(tags, _DESCRIBED_TAG),
        _read_epoch(tags, _UNDESCRIBABLE_TAG),
    )


def _read_epoch(tags: Mapping[int, bytes], tag: int) -> int:
    return Reader(tags[tag]).int32() if tag in tags else NO_TOPOLOGY_EPOCH


def _is_null(array: bytes) -> bool:
    """A null array has size 0 before its length of one less."""
    return array[:1] == b"\0"


def _read_pairs(reader: Reader) -> tuple[tuple[str, str], ...]:
    pairs = []
    for _ in range(reader.array_size(compact=True)):
        pairs.append((reader.string(compact=True), reader.string(compact=True)))
        reader.tagged_fields()
    return tuple(pairs)


def _read_member(reader: Reader) -> MemberValue:
    return MemberValue(
        reader.nullable_string(compact=True),
        reader.nullable_string(compact=True),
        reader.string(compact=True),
        reader.string(compact=True),
        reader.int32(),
        reader.int32(),
        reader.string(compact=True),
        _read_endpoint(reader),
        _read_pairs(reader),
    )


def _read_endpoint(reader: Reader) -> Endpoint | None:
    if reader.int8() < 0:
        return None
    endpoint = Endpoint(reader.string(compact=True), int.from_bytes(reader.take(2), "big"))
    reader.tagged_fields()
    return endpoint


def _read_partitions(reader: Reader) -> Partitions:
    partitions: dict[str, frozenset[int]] = {}
    for _ in range(reader.array_size(compact=True)):
        name = reader.string(compact=True)
        partitions[name] = frozenset(read_numbers(reader))
        reader.tagged_fields()
    return partitions


def _read_held(reader: Reader, member_epoch: int) -> HeldTasks:
    return HeldTasks(
        _read_active(reader, member_epoch), _read_partitions(reader), _read_partitions(reader)
    )


def _read_active(reader: Reader, member_epoch: int) -> AssignedPartitions:
    """Before Kafka 4.3 there are no epochs: the tasks count as assigned in the member's."""
    active: dict[str, Mapping[int, int]] = {}
    for _ in range(reader.array_size(compact=True)):
        name, numbers = reader.string(compact=True), read_numbers(reader)
        content = reader.tagged_fields().get(_EPOCHS_TAG)
        epochs = [] if content is None or _is_null(content) else read_numbers(Reader(content))
        if len(epochs) != len(numbers):
            epochs = [member_epoch] * len(numbers)
        active[name] = dict(zip(numbers, epochs, strict=True))
    return active


def _read_topology(reader: Reader) -> Topology:
    epoch, subtopologies = reader.int32(), []
    for _ in range(reader.array_size(compact=True)):
        subtopologies.append(
            Subtopology(
                reader.string(compact=True),
                read_strings(reader),
                read_strings(reader),
                _read_infos(reader),
                read_strings(reader),
                _read_infos(reader),
                _read_copartition_groups(reader),
            )
        )
        reader.tagged_fields()
    return Topology(epoch, tuple(sorted(subtopologies)))


def _read_infos(reader: Reader) -> tuple[TopicInfo, ...]:
    infos = []
    for _ in range(reader.array_size(compact=True)):
        info = (reader.string(compact=True), reader.int32(), reader.int16(), _read_pairs(reader))
        infos.append(TopicInfo(*info))
        reader.tagged_fields()
    return tuple(infos)


def _read_copartition_groups(reader: Reader) -> tuple[CopartitionGroup, ...]:
    groups = []
    for _ in range(reader.array_size(compact=True)):
        groups.append(CopartitionGroup(*(_read_positions(reader) for _ in range(3))))
        reader.tagged_fields()
    return tuple(groups)


def _read_positions(reader: Reader) -> tuple[int, ...]:
    return tuple(reader.int16() for _ in range(reader.array_size(compact=True)))


_FORMAT: Final = NewerRecords[Key, Value, StreamsRecord](
    KEY_KINDS, StreamsRecord, _write_value, _read_value
)
encode: Final = _FORMAT.encode
decode: Final = _FORMAT.decode
encode_key: Final = _FORMAT.encode_key
decode_key: Final = _FORMAT.decode_key
encode_value: Final = _FORMAT.encode_value
decode_value: Final = _FORMAT.decode_value
