"""A pipeline as the broker knows it: place, lag, and the state of its latest run.

Read from the pipeline's group and topics alone, so it works on any machine that reaches the
broker, without Spark and without the pipeline's files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.progress.group import TIMEOUT_S, Group, GroupError, Partition
from ottla.pipelines.progress.state import Said, read_said

MAX_SAMPLED: Final = 200
"""How many partitions are looked at for the age of their oldest message that is not delivered."""
SAMPLE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Lag:
    """What is not delivered yet. `age_ms` is the age of the oldest such message; None: not known.

    A message that has been removed by retention is not counted.
    """

    messages: int
    age_ms: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """`said` is the newest metadata in the group; None where no pipeline has committed to it."""

    group: str
    offsets: dict[Partition, int]
    said: Said | None
    lag: Lag | None  # None: no partition has a committed offset


def read_status(settings: Mapping[str, str], group: str, *, with_lag: bool = True) -> Status:
    """Read a pipeline's state and place from its group. Raises GroupError."""
    committed = Group(settings, group).read()
    offsets = {partition: commit.offset for partition, commit in committed.items()}
    said = [read_said(commit.metadata) for commit in committed.values()]
    latest = max((one for one in said if one), key=_newest, default=None)
    lag = read_lag(settings, offsets) if with_lag and offsets else None
    return Status(group, offsets, latest, lag)


def _newest(said: Said) -> tuple[int, int]:
    return (said.run.seen_ms if said.run else -1, -1 if said.batch is None else said.batch)


def read_lag(settings: Mapping[str, str], offsets: Mapping[Partition, int]) -> Lag:
    """Count what lies at and after these offsets, and look how old the oldest of it is.

    Raises GroupError where the broker does not answer.
    """
    ends = _offsets(settings, offsets, latest=True)
    starts = _offsets(settings, offsets, latest=False)
    behind = {
        partition: max(offset, starts.get(partition, 0))
        for partition, offset in offsets.items()
        if partition in ends
    }
    messages = sum(max(0, ends[partition] - offset) for partition, offset in behind.items())
    waiting = [
        (topic, partition, offset)
        for (topic, partition), offset in sorted(behind.items())
        if offset < ends[topic, partition]
    ]
    if not waiting:
        return Lag(0, 0)
    return Lag(messages, _oldest_age_ms(settings, waiting[:MAX_SAMPLED]))


def _offsets(
    settings: Mapping[str, str], partitions: Mapping[Partition, int], *, latest: bool
) -> dict[Partition, int]:
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    try:
        admin: Any = AdminClient({**settings, "log_level": 0})
        futures = admin.list_offsets(asked, request_timeout=TIMEOUT_S)
        return {
            (place.topic, place.partition): future.result(timeout=2 * TIMEOUT_S).offset
            for place, future in futures.items()
        }
    except KafkaException as error:
        raise GroupError(str(error.args[0].str())) from error
    except TimeoutError as error:
        raise GroupError(f"no answer within {2 * TIMEOUT_S} s") from error


def _oldest_age_ms(settings: Mapping[str, str], waiting: list[tuple[str, int, int]]) -> int | None:
    """Read the first waiting message of each partition; None where none came in time."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    own = {
        "group.id": "ottla-lag",  # required by librdkafka; nothing is committed and none is joined
        "enable.auto.commit": False,
        "enable.partition.eof": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        # Only the first message of each partition is looked at.
        "queued.max.messages.kbytes": 1_024,
        "max.partition.fetch.bytes": 65_536,
        "log_level": 0,
    }
    oldest: int | None = None
    missing = {(topic, partition) for topic, partition, _ in waiting}
    try:
        consumer: Any = Consumer({**settings, **own})
        try:
            consumer.assign([TopicPartition(*place) for place in waiting])
            until_s = time.monotonic() + SAMPLE_S
            while missing and (left_s := until_s - time.monotonic()) > 0:
                message = consumer.poll(left_s)
                if message is None or message.error():
                    continue
                place = (message.topic(), message.partition())
                if place in missing:
                    missing.discard(place)
                    consumer.incremental_unassign([TopicPartition(*place)])
                    at_ms = message.timestamp()[1]
                    oldest = at_ms if oldest is None else min(oldest, at_ms)
        finally:
            consumer.close()
    except KafkaException as error:
        raise GroupError(str(error.args[0].str())) from error
    return None if oldest is None else max(0, int(time.time() * 1_000) - oldest)
