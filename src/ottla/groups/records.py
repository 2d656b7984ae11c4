"""Every record of `__consumer_offsets`: those of classic groups and offsets, and KIP-848's.

Records of share and streams groups (kinds 9 to 15 and 17 on) are left alone.
"""

from __future__ import annotations

from typing import TypeAlias

from ottla.groups import record_format
from ottla.groups.consumer import record_format as consumer_format
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.stored import CoordinatorRecord

Record: TypeAlias = CoordinatorRecord | ConsumerRecord


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The record's key and value. Every offset commit comes here: no call more than it takes."""
    if isinstance(record, ConsumerRecord):
        return consumer_format.encode(record)
    return record_format.encode_key(record.key), record_format.encode_value(record.value)


def decode(key: bytes, value: bytes | None) -> Record | None:
    """The record, or None for a key of a kind that neither has.

    Raises ValueError for bytes that are no such record.
    """
    found = record_format.decode(key, value)
    return consumer_format.decode(key, value) if found is None else found
