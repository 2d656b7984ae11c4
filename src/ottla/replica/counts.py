"""What one partition has received and sent since the broker's start; for the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.records.header import BatchHeader


@dataclass(slots=True)
class Counts:
    """`in`: from producers, or from the leader. `out`: to consumers and followers."""

    bytes_in: int = 0
    bytes_out: int = 0
    batches_in: int = 0
    records_in: int = 0

    def add(self, headers: Sequence[BatchHeader]) -> None:
        """Count appended batches."""
        for header in headers:
            self.bytes_in += header.size_bytes
            self.records_in += header.count
            self.batches_in += 1
