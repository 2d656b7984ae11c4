"""Which partition of `__consumer_offsets` keeps a group: Java's String.hashCode, as in Kafka."""

from __future__ import annotations


def java_string_hash(text: str) -> int:
    """String.hashCode of Java: over UTF-16 units, in 32 signed bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(group: str, partitions: int) -> int:
    """The partition of the offsets topic that this group belongs to."""
    value = java_string_hash(group)
    # Kafka's Utils.abs: the one number that has no positive twin counts as 0.
    return 0 if value == -(1 << 31) else abs(value) % partitions
