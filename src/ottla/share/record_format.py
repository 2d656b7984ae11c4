"""The bytes of `__share_group_state`, as Apache Kafka's share coordinator writes and reads them.

    key       int16 0 (snapshot) or 1 (update), group string, topic id 16 bytes, partition int32
    snapshot  int16 0, snapshot epoch int32, state epoch int32, leader epoch int32, start int64,
              created int64 in ms, written int64 in ms, batches, tags
    update    int16 0, snapshot epoch int32, leader epoch int32, start int64, batches, tags
    batch     first int64, last int64, state int8, delivery count int16, tags
    tag 0     count of deliveries that are complete int32; left out at -1 (KIP-1226)

Values are flexible: compact arrays, tagged fields. Message definitions: ShareSnapshotKey.json,
ShareSnapshotValue.json, ShareUpdateKey.json, ShareUpdateValue.json. A crash leaves whole records
only: batches of the log are cut at the first torn one.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from ottla.shards.encoding import Reader, Writer
from ottla.share.record_state import stored_state
from ottla.share.state_batch import StateBatch
from ottla.share.stored import NO_COUNT, ShareKey, ShareRecord, Snapshot, Update

_SNAPSHOT: Final = 0
_UPDATE: Final = 1
_VERSION: Final = 0
_DELIVERY_COMPLETE_COUNT: Final = 0
"""The tag."""
_INT32: Final = Struct(">i")
_BATCH: Final = Struct(">qqbhB")
_NO_TAGS: Final = 0


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """The record's key and value."""
    key, value = record
    writer = Writer()
    writer.int16(_UPDATE if isinstance(value, Update) else _SNAPSHOT)
    writer.string(key.group_id)
    writer.parts.append(key.topic_id.bytes)
    writer.int32(key.partition)
    return writer.content(), None if value is None else _encode_value(value)


def _encode_value(value: Snapshot | Update) -> bytes:
    writer = Writer()
    writer.int16(_VERSION)
    writer.int32(value.snapshot_epoch)
    if isinstance(value, Snapshot):
        writer.int32(value.state_epoch)
    writer.int32(value.leader_epoch)
    writer.int64(value.start_offset)
    if isinstance(value, Snapshot):
        writer.int64(value.create_ms)
        writer.int64(value.write_ms)
    writer.compact_array_size(len(value.batches))
    for batch in value.batches:
        writer.parts.append(_BATCH.pack(*batch, _NO_TAGS))
    count = value.delivery_complete_count
    writer.tagged_fields(
        {} if count == NO_COUNT else {_DELIVERY_COMPLETE_COUNT: _INT32.pack(count)}
    )
    return writer.content()


def decode(key: bytes, value: bytes | None) -> ShareRecord | None:
    """The record, or None for a key of an unknown type.

    Raises ValueError for bytes that are no such record.
    """
    reader = Reader(key)
    kind = reader.int16()
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    share_key = ShareKey(reader.string(), reader.uuid(), reader.int32())
    if value is None:
        if kind == _UPDATE:
            raise ValueError("an update without a value")
        return ShareRecord(share_key, None)
    content = Reader(value)
    version = content.int16()
    if version != _VERSION:
        raise ValueError(f"version {version} of the value of a share partition")
    return ShareRecord(share_key, _snapshot(content) if kind == _SNAPSHOT else _update(content))


def _snapshot(reader: Reader) -> Snapshot:
    snapshot_epoch, state_epoch, leader_epoch = reader.int32(), reader.int32(), reader.int32()
    start_offset, create_ms, write_ms = reader.int64(), reader.int64(), reader.int64()
    batches = _batches(reader)
    count = _delivery_complete_count(reader)
    return Snapshot(
        snapshot_epoch, state_epoch, leader_epoch, start_offset, count, create_ms, write_ms, batches
    )


def _update(reader: Reader) -> Update:
    snapshot_epoch, leader_epoch, start_offset = reader.int32(), reader.int32(), reader.int64()
    batches = _batches(reader)
    return Update(
        snapshot_epoch, leader_epoch, start_offset, _delivery_complete_count(reader), batches
    )


def _batches(reader: Reader) -> Sequence[StateBatch]:
    found = []
    for _ in range(reader.array_size(compact=True)):
        first, last = reader.int64(), reader.int64()
        state, count = stored_state(reader.int8()), reader.int16()
        if not 0 <= first <= last:
            raise ValueError(f"stored batch from {first} to {last}")
        found.append(StateBatch(first, last, state, count))
        reader.tagged_fields()
    return found


def _delivery_complete_count(reader: Reader) -> int:
    content = reader.tagged_fields().get(_DELIVERY_COMPLETE_COUNT)
    if content is None:
        return NO_COUNT
    if len(content) != _INT32.size:
        raise ValueError(f"a count of {len(content)} bytes")
    count: int = _INT32.unpack(content)[0]
    return count
