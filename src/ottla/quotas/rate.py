"""Rates as Apache Kafka samples them (`common.metrics.stats`: SampledStat, Rate, TokenBucket).

A rate is the sum over some windows of a second, divided by the time since the oldest of them began,
at least all windows but one: a burst right after a pause is no high rate. A bucket holds tokens for
as long as the windows last together; it is filled at the quota's rate.
"""

from __future__ import annotations

from math import floor
from typing import Final, NamedTuple

MAX_THROTTLE_MS: Final = 2**31 - 1
"""What the responses' field holds: 24 days."""


class Windows(NamedTuple):
    """How a rate is sampled: `quota.window.num` and `quota.window.size.seconds`."""

    number: int
    size_ms: int

    @property
    def all_ms(self) -> int:
        return self.number * self.size_ms


class _Sample:
    __slots__ = ("began_ms", "last_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.began_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """How much a client has used per second."""

    __slots__ = ("_current", "_samples", "_windows", "used_ms")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms)]
        """A ring of one more than there are windows: one that overlaps the oldest."""
        self._current = 0
        self.used_ms = now_ms

    def record(self, value: float, now_ms: int) -> None:
        """Use `value`; a negative one takes back what was recorded."""
        self.used_ms = now_ms
        sample = self._samples[self._current]
        if now_ms - sample.began_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def over(self, limit: float, now_ms: int) -> float:
        """Milliseconds until the rate has come down to `limit` per second if nothing is used; 0 if
        it is not above it.
        """
        window_ms = self._window_ms(now_ms)
        rate = sum(each.value for each in self._samples) * 1000 / window_ms
        return (rate - limit) / limit * window_ms if rate > limit else 0

    def total(self, now_ms: int) -> float:
        """What was used within the windows."""
        self._window_ms(now_ms)
        return sum(each.value for each in self._samples)

    def _window_ms(self, now_ms: int) -> int:
        count, size_ms = self._windows
        forgotten_ms = now_ms - count * size_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if sample.last_ms <= forgotten_ms:
                sample.reset(now_ms)
            elif sample.began_ms < oldest_ms:
                oldest_ms = sample.began_ms
        elapsed_ms = now_ms - oldest_ms
        full = elapsed_ms // size_ms
        if full < count - 1:
            elapsed_ms += (count - 1 - full) * size_ms
        return max(elapsed_ms, 1)

    def is_like_new(self, limit: float, now_ms: int) -> bool:
        """Whether it remembers nothing, so that it can be dropped."""
        return now_ms - self.used_ms >= self._windows.all_ms


class TokenBucket:
    """What a client may use at once: it begins full."""

    __slots__ = ("_tokens", "_windows", "used_ms")

    def __init__(self, windows: Windows, now_ms: int, limit: float) -> None:
        self._windows = windows
        self._tokens = self._most(limit)
        self.used_ms = now_ms

    def _most(self, limit: float) -> float:
        return limit * self._windows.all_ms / 1000

    def record(self, value: float, limit: float, now_ms: int) -> None:
        """Take `value` tokens, even if there are fewer."""
        self._tokens = min(self._most(limit), self._filled(limit, now_ms) - value)
        self.used_ms = now_ms

    def _filled(self, limit: float, now_ms: int) -> float:
        added = limit * (now_ms - self.used_ms) / 1000
        return min(self._most(limit), self._tokens + added)

    def over(self, limit: float, now_ms: int) -> float:
        """Milliseconds until no token is owed; 0 if none is."""
        tokens = self._filled(limit, now_ms)
        return -tokens / limit * 1000 if tokens < 0 else 0

    def is_like_new(self, limit: float, now_ms: int) -> bool:
        """Whether it is full, so that it can be dropped."""
        return self._filled(limit, now_ms) >= self._most(limit)


def in_ms(throttle: float) -> int:
    """A time to wait as responses have it, rounded as by Java's Math.round."""
    return min(floor(throttle + 0.5), MAX_THROTTLE_MS)
