"""What a load counts: records, bytes and latencies, in all and in the last moment.

Pure: it is given the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.messaging.load.latency_histogram import LatencyHistogram

PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
MAX_SAMPLES: Final = 1000
"""Older ones are forgotten: the chart shows the last ones."""


class Sample(NamedTuple):
    """One moment of a run."""

    seconds: float
    """From the start to the end of the moment."""
    records_per_s: float
    bytes_per_s: float
    p50_us: int | None
    p99_us: int | None


@dataclass(frozen=True, slots=True)
class NotDelivered:
    """Records that failed for one reason."""

    error: str
    records: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A whole run. `latency_ms` is None if nothing was measured."""

    topic: str
    records: int
    bytes: int
    seconds: float
    records_per_s: int
    bytes_per_s: int
    latency_ms: dict[str, float | None] | None
    errors: list[NotDelivered]


class Meter:
    """Counts from `now_s` on, a monotonic time in seconds."""

    def __init__(self, now_s: float) -> None:
        self.records = 0
        self.size_bytes = 0
        self.errors: dict[str, int] = {}
        """Records by the reason why they failed."""
        self.latencies = LatencyHistogram()
        self.samples: list[Sample] = []
        self._start_s = self._sampled_s = now_s
        self._end_s = now_s
        self._before = (0, 0)
        self._moment = LatencyHistogram()

    def add(self, records: int, size_bytes: int) -> None:
        self.records += records
        self.size_bytes += size_bytes

    def add_latency(self, latency_us: int) -> None:
        self._moment.add(latency_us)

    def add_error(self, reason: str) -> None:
        self.errors[reason] = self.errors.get(reason, 0) + 1

    def sample(self, now_s: float) -> Sample | None:
        """End a moment. None if no time has passed."""
        elapsed_s = now_s - self._sampled_s
        if elapsed_s <= 0:
            return None
        found = Sample(
            now_s - self._start_s,
            (self.records - self._before[0]) / elapsed_s,
            (self.size_bytes - self._before[1]) / elapsed_s,
            self._moment.percentile(50),
            self._moment.percentile(99),
        )
        self.samples.append(found)
        del self.samples[:-MAX_SAMPLES]
        self._sampled_s, self._before = now_s, (self.records, self.size_bytes)
        self.latencies.merge(self._moment)
        self._moment = LatencyHistogram()
        return found

    def end(self, now_s: float) -> None:
        """The last record was counted then."""
        self.sample(now_s)
        self._end_s = now_s

    def measured(self, topic: str) -> Measured:
        """The whole run."""
        seconds = max(self._end_s - self._start_s, 1e-9)
        latencies = self.latencies
        percentiles = {
            name: milliseconds(latencies.percentile(percent))
            for name, percent in PERCENTILES.items()
        }
        return Measured(
            topic,
            self.records,
            self.size_bytes,
            round(self._end_s - self._start_s, 3),
            round(self.records / seconds),
            round(self.size_bytes / seconds),
            {**percentiles, "max": milliseconds(latencies.max_us)} if latencies.count else None,
            [NotDelivered(reason, count) for reason, count in self.errors.items()],
        )


def milliseconds(latency_us: int | None) -> float | None:
    return None if latency_us is None else latency_us / 1000
