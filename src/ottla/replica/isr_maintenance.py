"""Maintains the ISRs of the partitions that this broker leads.

Lagging replicas leave, caught-up replicas join.

As Kafka's ReplicaManager.maybeShrinkIsr, each half replica.lag.time.max.ms; a join is proposed as
soon as a fetch allows it. A single broker has nothing to propose.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from ottla.replication.leader import InSyncChange
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.replication")

PARTITIONS_A_SLICE: Final = 500


class InSync(Protocol):
    """A partition, as this module needs it."""

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """The ISR to propose now; `now_ms` is monotonic."""


Led = TypeVar("Led", bound=InSync)


class IsrMaintenance(Generic[Led]):
    """`partitions` returns the current partitions; `propose` sends a change to the controller."""

    def __init__(
        self,
        clock: Clock,
        lag_max_ms: int,
        partitions: Callable[[], Iterable[Led]],
        propose: Callable[[Led, InSyncChange], None],
    ) -> None:
        self._clock = clock
        self._every_ms = max(1, lag_max_ms // 2)
        self._partitions = partitions
        self._propose = propose
        self._background = Background(logger, "ISR maintenance")

    def start(self) -> None:
        self._background.keep(self._run)

    async def close(self) -> None:
        await self._background.close()

    def check(self, partition: Led) -> None:
        """Propose a due change for one partition; called after a fetch that allows a join."""
        change = partition.in_sync_change(self._clock.monotonic_ms())
        if change is not None:
            self._propose(partition, change)

    async def check_all(self) -> None:
        """One pass over all partitions, in slices, so that requests are served in between."""
        for number, partition in enumerate(list(self._partitions())):
            if number % PARTITIONS_A_SLICE == PARTITIONS_A_SLICE - 1:
                await asyncio.sleep(0)
            self.check(partition)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_ms / 1000)
            await self.check_all()
