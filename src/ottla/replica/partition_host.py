"""What all partitions of one broker share: its clock, its settings and its callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ottla.log.log import Log
from ottla.log.producer_load import ProducerLoad
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError
from ottla.replication.leader import LiveEpoch
from ottla.runtime.clock import Clock
from ottla.timelines.partition_timeline import Timeline

REPLICA_LAG_MAX_MS: Final = 30_000
"""Kafka's default of replica.lag.time.max.ms."""


class Timelines(Protocol):
    """Keeps the timelines of this broker's partitions."""

    def open(self, log: Log, *, high_watermark: int, now_ms: int, after_crash: bool) -> Timeline:
        """The timeline of a partition, at its first event."""

    def forget(self, timeline: Timeline) -> None:
        """The partition is deleted."""


def load_now(partition: object, load: ProducerLoad) -> None:
    """Raises ApiError KAFKA_STORAGE_ERROR."""
    try:
        load.run()
        load.apply()
    finally:
        load.end()


@dataclass(frozen=True, slots=True)
class PartitionHost:
    """Created once, where the broker's parts are connected. Callbacks receive the `Partition`."""

    broker_id: int
    clock: Clock
    timelines: Timelines
    write_failed: Callable[[Any, ApiError], None]
    """Called for each failed write; see `storage.storage_failure`."""
    lag_max_ms: int = REPLICA_LAG_MAX_MS
    live_epoch: LiveEpoch = lambda broker_id: -1
    """The epoch of a registered broker."""
    eligible: Callable[[Any], None] = lambda partition: None
    """Called when a follower may join the in-sync set."""
    remove: Callable[[Removal], None] = Removal.run
    """Receives files that a truncation has renamed, to delete them after their delay, off the loop.
    After a crash the next start deletes them."""
    load: Callable[[Any, ProducerLoad], None] = load_now
    """Receives the `Partition` and what reads its producers after a truncation, to run it off the
    loop; see `log.producer_load`."""
