"""The entry of the offset map that each partition is at.

A transaction adds its runs to the entry before it, by writing that again under the same key, so
that compaction leaves one record for MAX_JOINED runs; a mirror that has caught up makes many small
transactions, and an entry is ten times as large as a run in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.offset_map import Run

MAX_JOINED: Final = 32


class OpenEntries:
    """For one writer. Partitions are any side's."""

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, list[Run]] = {}
        """Those to which a run can be added."""
        self._written: dict[TopicPartition, list[Run]] = {}

    def joined(self, partition: TopicPartition, runs: Sequence[Run]) -> list[Run]:
        """What the transaction writes for its runs: the entry before them with them, or a new
        one.
        """
        before = self._committed.get(partition, [])
        joined = [*before, *runs] if len(before) + len(runs) <= MAX_JOINED else list(runs)
        self._written[partition] = joined
        return joined

    def note_committed(self) -> None:
        """The transaction was committed."""
        for partition, runs in self._written.items():
            if len(runs) < MAX_JOINED:
                self._committed[partition] = runs
            else:
                self._committed.pop(partition, None)
        self._written.clear()

    def forget(self) -> None:
        """A transaction was aborted, or another instance may have written since: each partition
        begins a new entry.
        """
        self._committed.clear()
        self._written.clear()
