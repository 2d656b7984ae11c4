"""Which partition of a coordinator's topic holds a group or transactional id, as in Kafka."""

from __future__ import annotations

import struct


def java_string_hash(text: str) -> int:
    """String.hashCode of Java: over UTF-16 units, in 32 signed bits."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partitions: int) -> int:
    """The partition that holds this key, of a topic with so many `partitions`."""
    value = java_string_hash(key)
    # Kafka's Utils.abs: the one number without a positive counterpart becomes 0.
    return 0 if value == -(1 << 31) else abs(value) % partitions
