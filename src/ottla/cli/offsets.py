"""Reads offsets from the brokers: first, last, and by time, of many partitions at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
)
from confluent_kafka import (
    TopicPartition as PartitionAt,
)
from confluent_kafka.admin import OffsetSpec

from ottla.cli.client import NO_ANSWER, Connection, explain
from ottla.cli.failures import Failed
from ottla.client.topic_partition import TopicPartition

# A new partition may have no leader yet, or one that has not opened it.
NOT_READY: Final = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
READY_TIMEOUT_S: Final = 5.0
READY_PAUSE_S: Final = 0.1
SHOWN_WITHIN_S: Final = 5.0
EARLIEST: Final = OffsetSpec.earliest()
LATEST: Final = OffsetSpec.latest()


def partitions_of(topics: Mapping[str, Any], wanted: Iterable[int] | None) -> list[TopicPartition]:
    """The chosen partitions, in order. Raises Failed for one that does not exist."""
    chosen: list[TopicPartition] = []
    for name, topic in topics.items():
        for number in sorted(set(wanted)) if wanted else sorted(topic.partitions):
            if number not in topic.partitions:
                last = len(topic.partitions) - 1
                raise Failed(f"topic {name!r} has partitions 0 to {last}, not {number}.")
            chosen.append(TopicPartition(name, number))
    return chosen


def answered_offsets(
    connection: Connection, wanted: Mapping[TopicPartition, Any], within_s: float
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """The offset of each partition by its OffsetSpec, -1 if no record is that recent; and for
    partitions without an offset, the reason as part of a sentence.
    """
    found: dict[TopicPartition, int] = {}
    why: dict[TopicPartition, str] = {}
    deadline = time.monotonic() + READY_TIMEOUT_S
    missing = dict(wanted)
    while missing:
        futures = connection.admin.list_offsets(
            {PartitionAt(*key): spec for key, spec in missing.items()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=within_s,
        )
        for partition, future in futures.items():
            key = TopicPartition(partition.topic, partition.partition)
            try:
                offset = future.result(within_s + 1).offset
            except (KafkaException, FutureTimeoutError) as error:
                code = error.args[0].code() if isinstance(error, KafkaException) else None
                if code in NOT_READY and time.monotonic() < deadline:
                    continue
                silent = code is None or code in NO_ANSWER
                why[key] = no_answer(within_s) if silent else explain(error.args[0]).rstrip(".")
            else:
                if offset == OFFSET_INVALID:
                    # librdkafka's error for a leader that does not respond.
                    why[key] = no_answer(within_s)
                else:
                    found[key] = offset
            del missing[key]
        if missing:
            time.sleep(READY_PAUSE_S)
    return found, why


def no_answer(within_s: float) -> str:
    return f"no response from its leader within {within_s:g} s"


def list_offsets(
    connection: Connection, wanted: Mapping[TopicPartition, Any]
) -> dict[TopicPartition, int]:
    """Like `answered_offsets`, but raises Failed if a partition has none."""
    found, why = answered_offsets(connection, wanted, connection.answer_timeout_s)
    for key, reason in why.items():
        raise Failed(f"cannot read the offsets of {key}: {reason}.")
    return found


def shown_offsets(
    connection: Connection, partitions: Iterable[TopicPartition], *specs: Any
) -> tuple[list[dict[TopicPartition, int]], dict[TopicPartition, str]]:
    """The offsets of partitions whose leaders respond within `SHOWN_WITHIN_S`, by OffsetSpec; and
    for the other partitions the reason.
    """
    within_s = min(SHOWN_WITHIN_S, connection.answer_timeout_s)
    asked, shown = list(partitions), []
    why: dict[TopicPartition, str] = {}
    for spec in specs:
        found, missing = answered_offsets(connection, dict.fromkeys(asked, spec), within_s)
        shown.append(found)
        why.update(missing)
        # Do not wait for the same leader twice.
        asked = list(found)
    return shown, why


def first_offsets(
    connection: Connection, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The first offset of each partition."""
    return list_offsets(connection, dict.fromkeys(partitions, EARLIEST))


def end_offsets(
    connection: Connection, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset of each partition's next record as consumers see it (its high watermark)."""
    return list_offsets(connection, dict.fromkeys(partitions, LATEST))


def offsets_at(
    connection: Connection, partitions: Iterable[TopicPartition], at_ms: int
) -> dict[TopicPartition, int]:
    """The offset of each partition's first record at or after that time; its end if there is
    none.
    """
    wanted = list(partitions)
    found = list_offsets(connection, dict.fromkeys(wanted, OffsetSpec.for_timestamp(at_ms)))
    late = [partition for partition, offset in found.items() if offset < 0]
    return {**found, **end_offsets(connection, late)}
