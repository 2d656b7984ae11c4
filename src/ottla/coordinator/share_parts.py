"""The parts of a broker that keep the states of share groups."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.share_coordinator import ShareCoordinator
from ottla.coordinator.share_persister import SharePersister
from ottla.share.shard import ShareShard


class ShareParts(NamedTuple):
    """What this broker does for the states of share groups."""

    runtime: CoordinatorRuntime[ShareShard]
    coordinator: ShareCoordinator
    persister: SharePersister

    def start(self) -> None:
        """Begins what is done from time to time."""
        self.coordinator.start()

    def close(self) -> None:
        """Ends that, and what waits."""
        self.coordinator.close()
        self.persister.close()
