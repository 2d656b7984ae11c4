"""How old the first record is that a group has not read: its lag in time.

No request returns the time of an offset, so the first record after each committed offset is read,
by a consumer without a group. It is kept for `group describe --watch`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
)
from confluent_kafka import (
    TopicPartition as PartitionAt,
)

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import failure, quiet, rejected

WITHIN_S: Final = 5.0
POLL_S: Final = 0.1
MAX_EVENTS: Final = 500
PARTITION_FETCH_BYTES: Final = 1024
"""A fetch returns whole batches, at least one of a partition; more are of no use here."""


class UnreadTimes:
    """Reads the times of records. Close it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: librdkafka's. Raises RejectedSettingsError."""
        own = {
            # A consumer needs a group id. Without commits nobody sees this one.
            "group.id": f"ottla-lag-{uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # The record may have been removed since: the next one counts.
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": PARTITION_FETCH_BYTES,
            "fetch.wait.max.ms": 100,
        }
        try:
            self._consumer = Consumer(own | quiet(settings))
        except KafkaException as error:
            raise rejected(error, "consume") from error

    def read(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The timestamp (ms since 1970) of the first record at or after each position.

        Left out are partitions without such a record, whose leaders do not respond within
        `WITHIN_S`, and records without a time. Raises LibrdkafkaError.
        """
        found: dict[TopicPartition, int] = {}
        missing = set(positions)
        if not missing:
            return found
        until = time.monotonic() + WITHIN_S
        try:
            self._consumer.assign([PartitionAt(*key, at) for key, at in positions.items()])
            while missing and time.monotonic() < until:
                for event in self._consumer.consume(MAX_EVENTS, POLL_S):
                    key = (event.topic(), event.partition())
                    if key not in missing or not _ends(event):
                        continue
                    missing.discard(key)
                    if event.error() is None and event.timestamp()[0] != TIMESTAMP_NOT_AVAILABLE:
                        found[key] = event.timestamp()[1]
            self._consumer.unassign()
        except KafkaException as error:
            raise failure(error, "read the first unread records") from error
        return found

    def close(self) -> None:
        self._consumer.close()


def _ends(event: Any) -> bool:
    """Whether the event says all about its partition: a record, or that there is none."""
    error = event.error()
    return error is None or error.code() in (
        KafkaError._PARTITION_EOF,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        # Who may not read it learns no time, and waits for none.
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )


def ages_ms(
    times: UnreadTimes,
    committed: Mapping[TopicPartition, int],
    lags: Mapping[TopicPartition, int],
    now_ms: int,
) -> dict[TopicPartition, int]:
    """The age of the first record of each partition that is not read: 0 if all are. Those that are
    unknown are left out.
    """
    read = times.read({key: committed[key] for key, lag in lags.items() if lag})
    ages = {key: max(0, now_ms - at_ms) for key, at_ms in read.items()}
    return {key: ages[key] if lag else 0 for key, lag in lags.items() if not lag or key in ages}
