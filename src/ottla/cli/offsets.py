"""Asking the broker for offsets: first, last, and by time, of many partitions at once."""

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
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from ottla.cli.client import NO_ANSWER, Connection, explain
from ottla.cli.failures import Failed

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
SHOWN_WITHIN_S: Final = 5.0
EARLIEST: Final = OffsetSpec.earliest()
LATEST: Final = OffsetSpec.latest()


def answered_offsets(
    connection: Connection, wanted: Mapping[Partition, Any], within_s: float
) -> tuple[dict[Partition, int], dict[Partition, str]]:
    """The offset of each partition by its OffsetSpec, -1 where no record is that young; and for
    those without one, why not: half a sentence."""
    found: dict[Partition, int] = {}
    why: dict[Partition, str] = {}
    deadline = time.monotonic() + READY_TIMEOUT_S
    missing = dict(wanted)
    while missing:
        futures = connection.admin.list_offsets(
            {TopicPartition(topic, number): spec for (topic, number), spec in missing.items()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=within_s,
        )
        for partition, future in futures.items():
            key = (partition.topic, partition.partition)
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
                    # What librdkafka makes of a leader that was asked and said nothing.
                    why[key] = no_answer(within_s)
                else:
                    found[key] = offset
            del missing[key]
        if missing:
            time.sleep(READY_PAUSE_S)
    return found, why


def no_answer(within_s: float) -> str:
    return f"its leader gives no answer within {within_s:g} s"


def list_offsets(connection: Connection, wanted: Mapping[Partition, Any]) -> dict[Partition, int]:
    """As `answered_offsets`, of every partition. Raises Failed where one has none."""
    found, why = answered_offsets(connection, wanted, connection.answer_timeout_s)
    for (topic, number), reason in why.items():
        raise Failed(f"cannot read the offsets of {topic}-{number}: {reason}.")
    return found


def shown_offsets(
    connection: Connection, partitions: Iterable[Partition], *specs: Any
) -> tuple[list[dict[Partition, int]], dict[Partition, str]]:
    """To show what is known: the offsets by each OffsetSpec of those partitions whose leaders
    answer within `SHOWN_WITHIN_S`; and why there are none of the others."""
    within_s = min(SHOWN_WITHIN_S, connection.answer_timeout_s)
    asked, told = list(partitions), []
    why: dict[Partition, str] = {}
    for spec in specs:
        found, missing = answered_offsets(connection, dict.fromkeys(asked, spec), within_s)
        told.append(found)
        why.update(missing)
        # Who is silent is not waited for again.
        asked = list(found)
    return told, why


def first_offsets(connection: Connection, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The first offset that each partition still has."""
    return list_offsets(connection, dict.fromkeys(partitions, EARLIEST))


def end_offsets(connection: Connection, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The offset that each partition gives its next record (its high watermark)."""
    return list_offsets(connection, dict.fromkeys(partitions, LATEST))


def offsets_at(
    connection: Connection, partitions: Iterable[Partition], at_ms: int
) -> dict[Partition, int]:
    """The offset of each partition's first record at that time or later; its end if none."""
    wanted = list(partitions)
    found = list_offsets(connection, dict.fromkeys(wanted, OffsetSpec.for_timestamp(at_ms)))
    late = [partition for partition, offset in found.items() if offset < 0]
    return {**found, **end_offsets(connection, late)}
