"""What the open transaction has, and whether to commit it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.commit_times import CommitTimes
from ottla.mirroring.target_producer import TransactionFailed
from ottla.mirroring.transaction_size import TransactionSize


class OpenTransaction:
    """For one loop. Times are of any clock, in seconds. `every_s` as `CommitTimes`."""

    def __init__(self, every_s: float | None) -> None:
        self.records = 0
        self.bytes = 0
        self.filled: set[TopicPartition] = set()
        """Those with records in it."""
        self.size = TransactionSize()
        self.times = CommitTimes(every_s)
        self._begun_s = 0.0
        """When the first record was added."""

    def fill(self, partitions: Collection[TopicPartition], now_s: float) -> None:
        """It gets records of these."""
        if partitions and not self.filled:
            self._begun_s = now_s
            self.times.note_begun(now_s)
        self.filled |= set(partitions)

    def wait_s(self, now_s: float, most_s: float) -> float:
        """How long to wait for more records."""
        return self.times.wait_s(now_s, most_s) if self.filled else most_s

    def is_time(
        self, now_s: float, *, is_all: bool, is_near_end: Callable[[TopicPartition], bool]
    ) -> bool:
        """Whether to commit. `is_all`: nothing more has been fetched."""
        is_full = self.size.is_full(self.records, self.bytes, len(self.filled))
        if is_full or self.times.is_due(now_s):
            self.times.note_looked(now_s)
            return True
        if not (is_all and self.filled and self.times.may_commit_early(now_s)):
            return False
        return all(is_near_end(each) for each in self.filled)

    def note_committed(self, now_s: float) -> None:
        """The next one is empty."""
        self.times.note_committed(now_s, len(self.filled))
        if self.filled:
            self.size.note_committed(self.bytes, now_s - self._begun_s)
        self.clear()

    def note_failed(self, failed: TransactionFailed) -> bool:
        """Whether the next one is smaller: the target did not acknowledge all of it in time."""
        return failed.is_late and self.size.note_late(
            self.bytes, 1 - failed.unacknowledged / max(1, self.records)
        )

    def clear(self) -> None:
        """It has ended."""
        self.filled.clear()
        self.records = self.bytes = 0
