"""Latencies counted in buckets, so that percentiles of any number of records cost little memory.

As in HdrHistogram, a bucket is a value's highest bits: 7 of them, so a percentile is at most 0.8 %
below the real one. Values are whole microseconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

BITS: Final = 7


class LatencyHistogram:
    """Counts of latencies. Negative ones count as 0: clocks may differ."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0
        self.max_us = 0

    def add(self, latency_us: int) -> None:
        shift = latency_us.bit_length() - BITS
        self._counts[latency_us if shift <= 0 else latency_us >> shift << shift] += 1
        self.count += 1
        if latency_us > self.max_us:
            self.max_us = latency_us

    def merge(self, other: LatencyHistogram) -> None:
        """Add all that the other one has counted."""
        self._counts.update(other._counts)
        self.count += other.count
        self.max_us = max(self.max_us, other.max_us)

    def percentile(self, percent: float) -> int | None:
        """The smallest latency (us) that is not exceeded by `percent` of all; None without any."""
        if not self.count:
            return None
        # The nearest rank. 100 % is known exactly.
        left = self.count * percent / 100
        for latency_us in sorted(self._counts):
            left -= self._counts[latency_us]
            if left <= 0:
                return max(latency_us, 0)
        return self.max_us
