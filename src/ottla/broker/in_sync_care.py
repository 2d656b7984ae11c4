"""The in-sync sets of the partitions led here: who lags is to leave, who caught up is to join.

Kafka's ReplicaManager.maybeShrinkIsr, each half replica.lag.time.max.ms; a join is proposed as soon
as a fetch shows it. One broker alone has nothing to propose.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from ottla.broker.background import Background
from ottla.broker.clock import Clock
from ottla.replication.leader import InSyncChange

logger = logging.getLogger("ottla.replication")

PARTITIONS_A_SLICE: Final = 500


class InSync(Protocol):
    """A partition as it is seen from here."""

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """What to propose now; monotonic time."""


Led = TypeVar("Led", bound=InSync)


class InSyncCare(Generic[Led]):
    """`partitions` tells those held now, `propose` hands a change to the controller."""

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
        self._background = Background(logger, "the care for in-sync sets")

    def start(self) -> None:
        self._background.keep(self._run)

    async def close(self) -> None:
        await self._background.close()

    def look(self, partition: Led) -> None:
        """Proposes what is due for one partition; after a fetch that lets a follower join."""
        change = partition.in_sync_change(self._clock.monotonic_ms())
        if change is not None:
            self._propose(partition, change)

    async def look_at_all(self) -> None:
        """One pass over all partitions, in slices, so that requests get their turn."""
        for number, partition in enumerate(list(self._partitions())):
            if number % PARTITIONS_A_SLICE == PARTITIONS_A_SLICE - 1:
                await asyncio.sleep(0)
            self.look(partition)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_ms / 1000)
            await self.look_at_all()
