"""Dead letters of share groups (KIP-1191): which topic takes them, and what they say. Pure.

One record for each offset, in the partition of the topic with the number of the record's partition
modulo their number, at the time of writing, uncompressed. Key and value are null, or the record's
own (errors.deadletterqueue.copy.record.enable); never its headers. Headers, all UTF-8:

    __dlq.errors.topic            the record's topic
    __dlq.errors.partition        in decimal, as all numbers
    __dlq.errors.offset
    __dlq.errors.group            the share group
    __dlq.errors.delivery.count
    __dlq.errors.message          `Cause`

As Kafka's ShareGroupDLQStateManager, with one difference: a record that is too large with these
headers is written without key and value. Kafka gives up that record and the ones after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.records.build import encode_records, finish_batch
from ottla.records.header import HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.record import Record
from ottla.share.share_partition import Letter

PREFIX: Final = "__dlq.errors."
INTERNAL_PREFIX: Final = "__"
MAX_RECORDS: Final = 1_000
"""Of one batch: at 15 us each."""

Contents = Mapping[int, tuple[bytes | None, bytes | None]]
"""Key and value by offset."""


class Origin(NamedTuple):
    """Where the records of some dead letters are."""

    group_id: str
    topic: str
    partition: int


class Wanted(NamedTuple):
    """What is known of the topic that a group names, and what the brokers' settings allow."""

    topic: str
    exists: bool
    is_allowed: bool
    """errors.deadletterqueue.group.enable of the topic."""
    may_create: bool
    """errors.deadletterqueue.auto.create.topics.enable"""
    prefix: str
    """errors.deadletterqueue.topic.name.prefix"""


def refusal(group_id: str, wanted: Wanted) -> str | None:
    """Why the group has no dead letters, in Kafka's words and order; None if it has some."""
    topic, prefix = wanted.topic, wanted.prefix
    if not topic:
        return f"Configured DLQ topic name in share group: {group_id} is empty."
    if topic.startswith(INTERNAL_PREFIX):
        return (
            f"Configured DLQ topic name in share group: {group_id} cannot start with __, topic: "
            f"{topic}."
        )
    if wanted.exists and not wanted.is_allowed:
        return (
            f"DLQ is not enabled on configured DLQ topic for share group: {group_id}, topic: "
            f"{topic}."
        )
    if not wanted.exists and not wanted.may_create:
        return (
            "DLQ topic does not exist and auto create is disabled on cluster for share group: "
            f"{group_id}, topic: {topic}."
        )
    if not topic.startswith(prefix):
        return (
            "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: "
            f"{group_id}, topic: {topic}, prefix: {prefix}."
        )
    return None


class Packed(NamedTuple):
    """One batch of dead letters."""

    batch: bytes
    size: int
    """In records."""
    next_offset: int | None
    """Of the record whose dead letter comes after it; None: that was the last one."""


def pack(
    origin: Origin,
    letters: Sequence[Letter],
    from_offset: int,
    until: int,
    contents: Contents,
    now_ms: int,
    max_bytes: int,
) -> Packed:
    """The dead letters from this offset on, as far as they fit into one batch of so many bytes, and
    none after the offset `until`. One at least, whatever its size. There must be some."""
    packed: list[bytes] = []
    size = HEADER_BYTES
    next_offset = None
    for offset, letter in _offsets(letters, from_offset):
        is_first = not packed
        record = _record(origin, offset, letter, contents, now_ms, len(packed))
        if is_first and size + len(record) > max_bytes:
            record = _record(origin, offset, letter, {}, now_ms, 0)
        is_full = len(packed) == MAX_RECORDS or size + len(record) > max_bytes
        if not is_first and (is_full or offset > until):
            next_offset = offset
            break
        packed.append(record)
        size += len(record)
    count = len(packed)
    assert count, "there are dead letters from this offset on"
    header = BatchHeader(
        base_offset=0,
        size_bytes=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )
    return Packed(finish_batch(header, b"".join(packed)), count, next_offset)


def _offsets(letters: Sequence[Letter], from_offset: int) -> Iterator[tuple[int, Letter]]:
    for letter in letters:
        for offset in range(max(letter.first, from_offset), letter.last + 1):
            yield offset, letter


def _record(
    origin: Origin, offset: int, letter: Letter, contents: Contents, now_ms: int, delta: int
) -> bytes:
    key, value = contents.get(offset, (None, None))
    headers = tuple(
        (PREFIX + name, text.encode())
        for name, text in (
            ("topic", origin.topic),
            ("partition", str(origin.partition)),
            ("offset", str(offset)),
            ("group", origin.group_id),
            ("delivery.count", str(letter.delivery_count)),
            ("message", letter.cause.value),
        )
    )
    return encode_records([Record(offset, now_ms, key, value, headers)], (delta,), now_ms)
