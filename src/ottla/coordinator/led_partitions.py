"""The partitions of one internal topic that this broker leads."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordinator.partition_log import PartitionLog
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_role import Role
from ottla.replica.partitions import Partitions


class LedPartitions:
    """A coordinator's view of this broker's partitions."""

    def __init__(self, partitions: Partitions, topic: str) -> None:
        self._partitions = partitions
        self._topic = topic

    def open(self, index: int) -> PartitionLog:
        """The log of one; raises ApiError NOT_COORDINATOR if this broker does not lead it."""
        partition = self._partitions.get(self._topic, index)
        if partition is None or partition.role is not Role.LEADER:
            raise ApiError(ErrorCode.not_coordinator)
        return PartitionLog(partition)

    def indexes(self) -> Iterable[int]:
        """Those that it leads now."""
        of_topic = self._partitions.of_topic(self._topic)
        return [each.index for each in of_topic if each.role is Role.LEADER]
