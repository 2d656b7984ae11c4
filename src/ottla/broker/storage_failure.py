"""What a broker does whose disk takes no more of what it leads.

Kafka takes the folder out of use, and a broker without another folder ends (KIP-112,
ReplicaManager.handleLogDirFailure). Here there is one folder. So a broker that cannot append to a
partition which another live in-sync replica could lead ends in good order: leadership is handed
over, and producers go on there. Where nobody else could lead it stays, for what it has can be read;
producers are told KAFKA_STORAGE_ERROR, and ask again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from ottla.broker.held_partition import HeldPartition
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.storage")

SAY_AGAIN_MS: Final = 10_000


class StorageFailure:
    """Told of each append of a client's that failed; `reason` is why this broker must end."""

    def __init__(self, node: Node) -> None:
        self.reason: str | None = None
        self.end: Callable[[], None] = lambda: None
        """Called once, when this broker is to end."""
        self._node = node
        self._said_ms: int | None = None

    def append_failed(self, partition: HeldPartition, error: ApiError) -> None:
        """`partition`, led here, could not be appended to. Other errors than the disk's pass."""
        if error.code is not ErrorCode.kafka_storage_error or self.reason is not None:
            return
        now_ms = self._node.clock.monotonic_ms()
        place = f"{partition.topic}-{partition.index}"
        if others := self._who_else_could_lead(partition):
            self.reason = f"{error}: this broker ends, so that others lead"
            logger.error("cannot append to %s, which %s can lead: %s", place, others, error)
            self.end()
        elif self._said_ms is None or now_ms >= self._said_ms + SAY_AGAIN_MS:
            self._said_ms = now_ms
            logger.error("cannot append to %s, which nobody else can lead: %s", place, error)

    def _who_else_could_lead(self, partition: HeldPartition) -> list[int]:
        state, live = partition.state, self._node.image.brokers
        own = self._node.config.id
        return [] if state is None else [each for each in state.isr if each != own and each in live]
