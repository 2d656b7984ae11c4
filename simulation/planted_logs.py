"""Bugs of logs and their disks to plant, as patches like those in `planted`.

Modules that are compiled ignore patches, so the bugs are planted in others. The model of one log
(`tests/log/model`) has more, such as a snapshot that outlives a truncation and a look-up in a gap
that finds the batch before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ottla.controller import leadership
from ottla.log import flush, names, truncation
from ottla.log.log import Log
from ottla.replica import partition_follower
from ottla.runtime import durable
from ottla.storage.log_maintenance import LogMaintenance
from ottla.storage.log_store import LogStore
from simulation.faults import Fault
from simulation.pace import Pace
from simulation.planted import Patch, Sighting


def a_cut_log_is_closed_without_a_snapshot(patch: Patch) -> None:
    """After a truncation and an orderly stop no producer and no open transaction is known
    (KAFKA-5435)."""
    right, cut = LogStore.close, truncation.truncate_to
    ends: dict[Log, int] = {}

    def truncate_to(log: Log, offset: int, *, now_ms: int) -> Any:
        removal = cut(log, offset, now_ms=now_ms)
        ends[log] = log.end_offset
        return removal

    def close(self: LogStore, *given: Any, **named: Any) -> None:
        logs = list(self.logs.values())
        right(self, *given, **named)
        for log in logs:
            if ends.get(log) == log.end_offset:
                for path in Path(log.folder).glob(f"*{names.SNAPSHOT}"):
                    path.unlink()

    patch.setattr(partition_follower, "truncate_to", truncate_to)
    patch.setattr(LogStore, "close", close)


def a_new_topic_begins_where_the_old_one_did(patch: Patch) -> None:
    """A topic is made again before the checkpoint files are written without the old one."""

    async def free(self: LogMaintenance, topic: str, index: int) -> None:
        self._store.stale.discard((topic, index))

    patch.setattr(LogMaintenance, "free", free)


def an_epoch_outlives_a_power_failure(patch: Patch) -> None:
    """A partition with one replica keeps its leader epoch though records are missing."""
    right = leadership._may_stay

    def may_stay(state: Any, isr: tuple[int, ...], brokers: Any) -> bool:
        alone = len(state.replicas) == 1 and state.leader in isr and state.leader in brokers.live
        return alone or right(state, isr, brokers)

    patch.setattr(leadership, "_may_stay", may_stay)


def a_failed_sync_is_forgotten(patch: Patch) -> None:
    """What is not on the disk is acknowledged as if it were: the next sync succeeds."""
    right = durable.sync_data

    def sync_data(fd: int) -> None:
        try:
            right(fd)
        except OSError:
            right(fd)

    patch.setattr(flush, "sync_data", sync_data)


def of(kind: str, seed: int, *, ms: int = 300) -> Sighting:
    """One fault of this kind, in a swift run of this seed."""
    return Sighting(seed, (Fault(1_500, kind, 1, 2, ms, seed),), Pace.SWIFT)


PLANTED_LOGS: Final[dict[Callable[[Patch], None], Sighting]] = {
    a_cut_log_is_closed_without_a_snapshot: of("cut and stop", 0),
    a_new_topic_begins_where_the_old_one_did: of("recreate", 24),
    an_epoch_outlives_a_power_failure: of("power alone", 6),
    a_failed_sync_is_forgotten: of("fail sync", 27),
}
"""Found by runs with faults of logs."""
