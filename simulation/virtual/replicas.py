"""Replicas of one partition, compared byte by byte from the brokers' real log files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulation.virtual.broker import Broker
from simulation.virtual.violation import Violation


def check_replicas(brokers: Mapping[int, Broker], topic: str, index: int, leader: int) -> Any:
    """Return the leader's partition once all replicas are found equal. Raises Violation."""
    node = brokers[leader].node
    if node is None:
        raise Violation(f"broker {leader} leads {topic}-{index} and is down")
    led = node.partitions.get(topic, index)
    if led is None:
        raise Violation(f"broker {leader} leads {topic}-{index} and does not have it")
    expected = content(led.log)
    for number, broker in brokers.items():
        copy = None if broker.node is None else broker.node.partitions.get(topic, index)
        if copy is None or number == leader:
            continue
        if copy.log.end_offset != led.log.end_offset:
            raise Violation(
                f"{topic}-{index} ends at {copy.log.end_offset} on broker {number} and at "
                f"{led.log.end_offset} on its leader, broker {leader}"
            )
        if content(copy.log) != expected:
            raise Violation(f"{topic}-{index} differs on broker {number} from its leader, {leader}")
    return led


def content(log: Any) -> bytes:
    """All bytes of a log."""
    parts = []
    for segment in log.segments:
        if segment.size_bytes:
            with open(segment.path, "rb") as file:
                parts.append(file.read(segment.size_bytes))
    return b"".join(parts)
