"""The bytes of `__transaction_state`, as Apache Kafka's coordinator writes and reads them.

    key    int16 0, transactional id string
    value  int16 version, then
      0    producer id int64, producer epoch int16, timeout int32 in ms, state int8,
           partitions[]? (null in the state Empty), last update int64, start int64 (-1: none)
           partition: topic string, indexes int32[]
      1    the same with compact strings, arrays and tags (KIP-890):
           0 previous producer id int64, 1 next producer id int64, 2 client's transaction.version
           int16; a tag is left out at its default (-1, -1, 0). Tag 3, next producer epoch int16,
           is defined and not written in Kafka 4.3

Version 1 is written while the cluster's transaction.version is 1 or above. Message definitions:
TransactionLogKey.json, TransactionLogValue.json. A crash leaves whole records only: batches are cut
at the first torn one.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.shards.encoding import Reader, Writer
from ottla.transactions.state import EMPTY, TransactionState
from ottla.transactions.stored import (
    NO_PRODUCER_ID,
    TopicPartition,
    TransactionRecord,
    TransactionValue,
)

_KEY: Final = 0
_NEWEST_VALUE: Final = 1
_STATES: Final = tuple(TransactionState)
"""By their stored number."""
_NUMBERS: Final = {state: number for number, state in enumerate(_STATES)}
_HEAD: Final = Struct(">hqhib")
_TIMES: Final = Struct(">qq")
_PREVIOUS_PRODUCER_ID: Final = 0
_NEXT_PRODUCER_ID: Final = 1
_CLIENT_VERSION: Final = 2
_INT64: Final = Struct(">q")
_INT16: Final = Struct(">h")


def encode(record: TransactionRecord, version: int) -> tuple[bytes, bytes | None]:
    """The record's key and value, with the value in version 0 or 1."""
    writer = Writer()
    writer.int16(_KEY)
    writer.string(record.transactional_id)
    value = None if record.value is None else _encode_value(record.value, version)
    return writer.content(), value


def _encode_value(value: TransactionValue, version: int) -> bytes:
    assert value.partitions == frozenset() or value.state is not EMPTY
    writer = Writer()
    writer.parts.append(
        _HEAD.pack(version, value.producer_id, value.epoch, value.timeout_ms, _NUMBERS[value.state])
    )
    if version == 0:
        _write_partitions(writer, value)
    else:
        _write_compact_partitions(writer, value)
    writer.parts.append(_TIMES.pack(value.last_update_ms, value.start_ms))
    if version > 0:
        _write_tags(writer, value)
    return writer.content()


def _by_topic(value: TransactionValue) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in value.partitions:
        topics.setdefault(topic, []).append(index)
    return {topic: sorted(topics[topic]) for topic in sorted(topics)}


def _write_partitions(writer: Writer, value: TransactionValue) -> None:
    if value.state is EMPTY:
        writer.int32(-1)
        return
    topics = _by_topic(value)
    writer.int32(len(topics))
    for topic, indexes in topics.items():
        writer.string(topic)
        writer.int32(len(indexes))
        for index in indexes:
            writer.int32(index)


def _write_compact_partitions(writer: Writer, value: TransactionValue) -> None:
    if value.state is EMPTY:
        writer.unsigned_varint(0)
        return
    topics = _by_topic(value)
    writer.unsigned_varint(len(topics) + 1)
    for topic, indexes in topics.items():
        writer.compact_string(topic)
        writer.unsigned_varint(len(indexes) + 1)
        for index in indexes:
            writer.int32(index)
        writer.unsigned_varint(0)


def _write_tags(writer: Writer, value: TransactionValue) -> None:
    tags = []
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags.append((_PREVIOUS_PRODUCER_ID, _INT64.pack(value.previous_producer_id)))
    if value.next_producer_id != NO_PRODUCER_ID:
        tags.append((_NEXT_PRODUCER_ID, _INT64.pack(value.next_producer_id)))
    if value.client_version:
        tags.append((_CLIENT_VERSION, _INT16.pack(value.client_version)))
    writer.unsigned_varint(len(tags))
    for tag, content in tags:
        writer.unsigned_varint(tag)
        writer.unsigned_varint(len(content))
        writer.parts.append(content)


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """The record, or None for a key of an unknown type.

    Raises ValueError for bytes that are no such record.
    """
    reader = Reader(key)
    if reader.int16() != _KEY:
        return None
    transactional_id = reader.string()
    return TransactionRecord(transactional_id, None if value is None else _decode_value(value))


def _decode_value(content: bytes) -> TransactionValue:
    reader = Reader(content)
    version = reader.int16()
    if not 0 <= version <= _NEWEST_VALUE:
        raise ValueError(f"version {version} of the value of a transactional id")
    compact = version > 0
    producer_id = reader.int64()
    epoch = reader.int16()
    timeout_ms = reader.int32()
    (number,) = reader.take(1)
    if number >= len(_STATES):
        raise ValueError(f"state {number} of a transaction")
    partitions = _read_partitions(reader, compact)
    last_update_ms = reader.int64()
    start_ms = reader.int64()
    tags = reader.tagged_fields() if compact else {}
    return TransactionValue(
        producer_id,
        epoch,
        timeout_ms,
        _STATES[number],
        partitions,
        last_update_ms,
        start_ms,
        _tag(tags, _PREVIOUS_PRODUCER_ID, _INT64, NO_PRODUCER_ID),
        _tag(tags, _NEXT_PRODUCER_ID, _INT64, NO_PRODUCER_ID),
        _tag(tags, _CLIENT_VERSION, _INT16, 0),
    )


def _read_partitions(reader: Reader, compact: bool) -> frozenset[TopicPartition]:
    found: set[TopicPartition] = set()
    for _ in range(_nullable_array_size(reader, compact)):
        topic = reader.string(compact)
        for _ in range(reader.array_size(compact)):
            found.add(TopicPartition(topic, reader.int32()))
        if compact:
            reader.tagged_fields()
    return frozenset(found)


def _nullable_array_size(reader: Reader, compact: bool) -> int:
    """0 for null: Empty has no partitions."""
    start = reader.position
    size = reader.unsigned_varint() - 1 if compact else reader.int32()
    if size == -1:
        return 0
    reader.position = start
    return reader.array_size(compact)


def _tag(tags: dict[int, bytes], tag: int, form: Struct, default: int) -> int:
    content = tags.get(tag)
    if content is None:
        return default
    if len(content) != form.size:
        raise ValueError(f"tag {tag} of {len(content)} bytes")
    value: int = form.unpack(content)[0]
    return value
