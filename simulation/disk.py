"""What of a broker outlives its process."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from simulation.memory_log import MemoryLog


@dataclass(slots=True)
class Disk:
    """Logs by partition, and the high watermarks as they were put down last."""

    directory_id: UUID
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    high_watermarks: dict[str, int] = field(default_factory=dict)

    def checkpoint_survives(self, random: Random) -> None:
        """The checkpoint of high watermarks is written now and then: a crash finds an old one."""
        for partition, offset in self.high_watermarks.items():
            self.high_watermarks[partition] = max(0, offset - random.randrange(6))

    def process_began(self) -> None:
        """The one before took with it what it had in memory alone: logs without a record, and the
        last epoch that it led in and wrote nothing.
        """
        self.logs = {name: log for name, log in self.logs.items() if log.entries}
        for log in self.logs.values():
            log.truncate_to(log.end_offset)

    def open(self, partition: str, topic_id: UUID) -> MemoryLog:
        """The replica's log, as found or new."""
        log = self.logs.get(partition)
        if log is None:
            log = self.logs[partition] = MemoryLog(topic_id)
        assert log.topic_id == topic_id
        return log

    def forget(self, partition: str) -> None:
        """The topic is deleted, or the replica is another broker's now."""
        self.logs.pop(partition, None)
        self.high_watermarks.pop(partition, None)
