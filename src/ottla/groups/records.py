"""Every record of `__consumer_offsets`: those of classic groups and offsets, of consumer groups
(KIP-848), of share groups (KIP-932) and of streams groups (KIP-1071).
"""

from __future__ import annotations

from typing import TypeAlias

from ottla.groups import record_format
from ottla.groups.consumer import record_format as consumer_format
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.share import record_format as share_format
from ottla.groups.share.stored import ShareRecord
from ottla.groups.stored import CoordinatorRecord
from ottla.groups.streams import record_format as streams_format
from ottla.groups.streams.stored import StreamsRecord

Record: TypeAlias = CoordinatorRecord | ConsumerRecord | ShareRecord | StreamsRecord


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The record's key and value. Every offset commit comes here: no call more than it takes."""
    if isinstance(record, CoordinatorRecord):
        return record_format.encode_key(record.key), record_format.encode_value(record.value)
    if isinstance(record, ConsumerRecord):
        return consumer_format.encode(record)
    if isinstance(record, ShareRecord):
        return share_format.encode(record)
    return streams_format.encode(record)


def decode(key: bytes, value: bytes | None) -> Record | None:
    """The record, or None for a key of a kind that none of them has.

    Raises ValueError for bytes that are no such record.
    """
    found: Record | None = record_format.decode(key, value)
    if found is None:
        found = consumer_format.decode(key, value)
    if found is None:
        found = share_format.decode(key, value)
    return streams_format.decode(key, value) if found is None else found
