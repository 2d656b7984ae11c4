"""What a broker does whose disk takes no more of what it holds.

Kafka takes the folder out of use, and a broker without another folder ends (KIP-112,
ReplicaManager.handleLogDirFailure). Here there is one folder. So a broker that cannot write to a
partition which another live in-sync replica leads, or could lead, ends in good order: leadership is
handed over, nobody waits for its copies, and producers and groups go on. Where nobody else could
lead it stays, for what it has can be read; producers are told KAFKA_STORAGE_ERROR, and ask again.

Brokers on one machine may have one disk, which is full for all of them at once. So that not all of
them end, each gives those with lower numbers the time to leave, and then looks who is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from ottla.broker.held_partition import HeldPartition
    from ottla.broker.node import Node
    from ottla.controller.image import PartitionState

logger = logging.getLogger("ottla.storage")

SAY_AGAIN_MS: Final = 10_000
TURN_MS: Final = 2_000
"""Longer than a broker takes to hand over what it leads."""


class StorageFailure:
    """Told of each write to a partition that failed, whoever's it was: a producer's, a group's, a
    copy. `reason` is why this broker must end.
    """

    def __init__(self, node: Node) -> None:
        self.reason: str | None = None
        self.end: Callable[[], None] = lambda: None
        """Called once, when this broker is to end."""
        self._node = node
        self._said_ms: int | None = None
        self._waits = False
        """For its turn to end."""

    def write_failed(self, partition: HeldPartition, error: ApiError) -> None:
        """`partition` could not be written to. Other errors than the disk's pass."""
        self.failed(partition.topic, partition.index, partition.state, error)

    def failed(self, topic: str, index: int, state: PartitionState | None, error: ApiError) -> None:
        """As `write_failed`, of a partition that could not even be opened."""
        if error.code is not ErrorCode.kafka_storage_error or self.reason or self._waits:
            return
        place, others = f"{topic}-{index}", self._who_else_could_lead(state)
        if others:
            logger.error("cannot write %s, which %s can lead: %s", place, others, error)
            before = sum(each < self._node.config.id for each in others)
            if before == 0:
                self._end(error)
                return
            self._waits = True
            turn_s = before * TURN_MS / 1000
            asyncio.get_running_loop().call_later(turn_s, self._end_in_turn, topic, index, error)
            return
        now_ms = self._node.clock.monotonic_ms()
        if self._said_ms is None or now_ms >= self._said_ms + SAY_AGAIN_MS:
            self._said_ms = now_ms
            logger.error("cannot write %s, which nobody else can lead: %s", place, error)

    def _end_in_turn(self, topic: str, index: int, error: ApiError) -> None:
        self._waits = False
        if self._node.closing:
            return
        if self._who_else_could_lead(self._node.image.partition(topic, index)):
            self._end(error)

    def _end(self, error: ApiError) -> None:
        self.reason = f"{error}: this broker ends, so that others go on"
        self.end()

    def _who_else_could_lead(self, state: PartitionState | None) -> list[int]:
        own, live = self._node.config.id, self._node.image.brokers
        return [] if state is None else [each for each in state.isr if each != own and each in live]
