"""Asking the broker for offsets: first, last, and by time, of many partitions at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from ottla.cli.client import Connection

Partition = tuple[str, int]


# A partition that was made a moment ago has no leader yet, or one that has not opened it.
NOT_READY: Final = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
READY_TIMEOUT_S: Final = 5.0
READY_PAUSE_S: Final = 0.1


def list_offsets(connection: Connection, wanted: Mapping[Partition, Any]) -> dict[Partition, int]:
    """The offset of each partition by its OffsetSpec; -1 where no record is that young.

    Raises Failed where one of the leaders gives no answer.
    """
    found: dict[Partition, int] = {}
    deadline = time.monotonic() + READY_TIMEOUT_S
    missing = dict(wanted)
    while missing:
        futures = connection.admin.list_offsets(
            {TopicPartition(topic, number): spec for (topic, number), spec in missing.items()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=connection.answer_timeout_s,
        )
        for partition, future in futures.items():
            key = (partition.topic, partition.partition)
            error = future.exception(connection.answer_timeout_s + 1)
            not_ready = isinstance(error, KafkaException) and error.args[0].code() in NOT_READY
            if not_ready and time.monotonic() < deadline:
                continue
            doing = f"read the offsets of {key[0]}-{key[1]}"
            offset = connection.wait(future, doing).offset
            if offset == OFFSET_INVALID:
                # What librdkafka makes of a leader that was asked and said nothing.
                raise connection.no_answer(doing)
            found[key] = offset
            del missing[key]
        if missing:
            time.sleep(READY_PAUSE_S)
    return found


def first_offsets(connection: Connection, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The first offset that each partition still has."""
    return list_offsets(connection, dict.fromkeys(partitions, OffsetSpec.earliest()))


def end_offsets(connection: Connection, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The offset that each partition gives its next record (its high watermark)."""
    return list_offsets(connection, dict.fromkeys(partitions, OffsetSpec.latest()))


def offsets_at(
    connection: Connection, partitions: Iterable[Partition], at_ms: int
) -> dict[Partition, int]:
    """The offset of each partition's first record at that time or later; its end if none."""
    wanted = list(partitions)
    found = list_offsets(connection, dict.fromkeys(wanted, OffsetSpec.for_timestamp(at_ms)))
    late = [partition for partition, offset in found.items() if offset < 0]
    return {**found, **end_offsets(connection, late)}
