"""A pipeline as the broker knows it: offsets, lag, and the state of its latest run.

Read from the pipeline's group and topics alone, so it works on any machine that reaches the
broker, without Spark and without the pipeline's files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ottla.pipelines.progress.group import TIMEOUT_S, Group, GroupError, Partition, new_admin
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, read_offset_metadata
from ottla.pipelines.progress.starting_run import read_starting

MAX_SAMPLED: Final = 200
"""How many partitions are looked at for the age of their oldest message that is not delivered."""
SAMPLE_S: Final = 3.0
_SAMPLING: Final = {
    "group.id": "ottla-lag",  # required by librdkafka; no group is joined and nothing is committed
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,
    # Only the first message of each partition is looked at.
    "queued.max.messages.kbytes": 1_024,
    "max.partition.fetch.bytes": 65_536,
}


@dataclass(frozen=True, slots=True)
class Lag:
    """What is not delivered yet. `age_ms` is the age of the oldest such message; None: not known.

    A message that has been removed by retention is not counted, and one of a partition that was
    added since the last batch is.
    """

    messages: int
    age_ms: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """`metadata` is the newest metadata of the pipeline; None where it has committed nothing."""

    group: str
    offsets: dict[Partition, int]
    metadata: OffsetMetadata | None
    lag: Lag | None  # None: no partition has a committed offset


def read_status(settings: Mapping[str, str], group: str, *, with_lag: bool = True) -> Status:
    """Read a pipeline's state and offsets from its group. Raises GroupError."""
    admin = new_admin(settings)
    asked = Group(settings, group, admin)
    committed = asked.read_all()
    offsets = {partition: commit.offset for partition, commit in committed.items()}
    found = [read_offset_metadata(commit.metadata) for commit in committed.values()]
    latest = _latest(max((one for one in found if one), key=_newest, default=None), asked)
    lag = read_lag(settings, offsets, admin) if with_lag and offsets else None
    return Status(group, offsets, latest, lag)


def _latest(latest: OffsetMetadata | None, group: Group) -> OffsetMetadata | None:
    """Return the newest state: that of the group, or of a run that came no further than a start."""
    starting = read_starting(group)
    if starting is None or starting.run is None:
        return latest
    if latest is None:
        return starting
    run = latest.run
    if run is not None and (run.id == starting.run.id or run.seen_ms > starting.run.seen_ms):
        return latest
    return replace(latest, run=starting.run)


def _newest(metadata: OffsetMetadata) -> tuple[int, int]:
    batch = -1 if metadata.batch is None else metadata.batch
    return (metadata.run.seen_ms if metadata.run else -1, batch)


def read_lag(
    settings: Mapping[str, str], offsets: Mapping[Partition, int], admin: Any = None
) -> Lag:
    """Count what lies at and after these offsets, and look how old the oldest of it is.

    `admin`: the AdminClient to use, None for a new one. Raises GroupError where the broker does
    not answer.
    """
    reader = LagReader(settings, admin)
    try:
        return reader.read(offsets)
    finally:
        reader.close()


class LagReader:
    """Reads a lag again and again with the same two clients."""

    def __init__(self, settings: Mapping[str, str], admin: Any = None) -> None:
        self._settings = {**settings, "log_level": 0}
        self._admin = admin
        self._consumer: Any = None

    def read(self, offsets: Mapping[Partition, int]) -> Lag:
        """See `read_lag`."""
        from confluent_kafka import KafkaException

        try:
            return self._read(offsets)
        except KafkaException as error:
            raise GroupError(str(error.args[0].str())) from error
        except TimeoutError as error:
            raise GroupError(f"no answer within {2 * TIMEOUT_S} s") from error

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _read(self, committed: Mapping[Partition, int]) -> Lag:
        offsets = {**self._added(committed), **committed}
        ends = self._offsets(offsets, latest=True)
        starts = self._offsets(offsets, latest=False)
        waiting = [
            (partition, max(offset, starts[partition]))
            for partition, offset in sorted(offsets.items())
            if max(offset, starts[partition]) < ends[partition]
        ]
        if not waiting:
            return Lag(0, 0)
        messages = sum(ends[partition] - offset for partition, offset in waiting)
        return Lag(messages, self._oldest_age_ms(waiting[:MAX_SAMPLED]))

    def _added(self, committed: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the partitions of these topics that are new: a pipeline reads all of them."""
        from confluent_kafka import TopicCollection

        if not committed:
            return {}
        names = sorted({topic for topic, _ in committed})
        futures = self._client().describe_topics(TopicCollection(names), request_timeout=TIMEOUT_S)
        return {
            (name, one.id): 0
            for name, future in futures.items()
            for one in future.result(timeout=2 * TIMEOUT_S).partitions
            if (name, one.id) not in committed
        }

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            self._admin = AdminClient(self._settings)
        return self._admin

    def _offsets(
        self, partitions: Mapping[Partition, int], *, latest: bool
    ) -> dict[Partition, int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()
        asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        futures = self._client().list_offsets(asked, request_timeout=TIMEOUT_S)
        return {
            (one.topic, one.partition): future.result(timeout=2 * TIMEOUT_S).offset
            for one, future in futures.items()
        }

    def _oldest_age_ms(self, waiting: list[tuple[Partition, int]]) -> int | None:
        """Read the first waiting message of each partition; None where none came in time."""
        from confluent_kafka import Consumer, TopicPartition

        if self._consumer is None:
            self._consumer = Consumer({**self._settings, **_SAMPLING})
        consumer = self._consumer
        topic_partitions = [TopicPartition(*partition, offset) for partition, offset in waiting]
        consumer.assign(topic_partitions)
        missing = {partition for partition, _ in waiting}
        oldest: int | None = None
        until_s = time.monotonic() + SAMPLE_S
        while missing and (left_s := until_s - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            if message is None or message.error():
                continue
            topic_partition = (message.topic(), message.partition())
            if topic_partition in missing:
                missing.discard(topic_partition)
                consumer.incremental_unassign([TopicPartition(*topic_partition)])
                at_ms = message.timestamp()[1]
                oldest = at_ms if oldest is None else min(oldest, at_ms)
        consumer.unassign()
        return None if oldest is None else max(0, int(time.time() * 1_000) - oldest)
