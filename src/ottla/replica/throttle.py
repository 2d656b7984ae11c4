"""Replication throttles: a byte rate for the replicas that a topic names (KIP-73).

A broker has two: one for what its leaders send, one for what its followers fetch. Over the quota, a
throttled out-of-sync replica is left out until the rate has come down. An in-sync replica is never
left out, so a throttle cannot shrink an ISR. As in Kafka's ReplicationQuotaManager, the rate is the
mean over replication.quota.window.num windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

EVERY: Final = "*"


class Quota:
    """The byte rate over the last windows. Pure: the time is passed in."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: deque[tuple[int, int]] = deque()
        """(start of the window, bytes)."""

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count `size_bytes` transferred now."""
        if self._samples and now_ms - self._samples[-1][0] < self._window_ms:
            began_ms, before = self._samples.pop()
            self._samples.append((began_ms, before + size_bytes))
            return
        self._drop_old(now_ms)
        self._samples.append((now_ms, size_bytes))

    def bytes_a_second(self, now_ms: int) -> float:
        """The mean rate, over at least all windows but one, as in Kafka's Rate: a burst right after
        a pause does not count as a high rate.
        """
        self._drop_old(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], (self._windows - 1) * self._window_ms, 1)
        return sum(size_bytes for _, size_bytes in self._samples) * 1000 / elapsed_ms

    def _drop_old(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows * self._window_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._samples.popleft()


class Throttle:
    """One side's throttle; use only from the event loop's thread."""

    def __init__(
        self,
        broker_id: int,
        rate: Callable[[], int],
        quota: Quota,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`rate` returns the currently allowed bytes a second."""
        self._broker_id = broker_id
        self._rate = rate
        self._quota = quota
        self._monotonic_ms = monotonic_ms
        self._named: dict[str, frozenset[int] | None] = {}
        """Throttled partitions by topic; None stands for all."""

    def configure(self, topic: str, replicas: Sequence[str]) -> None:
        """The topic's setting: `*`, or pairs partition:broker."""
        if EVERY in replicas:
            self._named[topic] = None
            return
        pairs = (pair.split(":") for pair in replicas)
        mine = frozenset(int(index) for index, broker in pairs if int(broker) == self._broker_id)
        if mine:
            self._named[topic] = mine
        else:
            self._named.pop(topic, None)

    def forget(self, topic: str) -> None:
        """The topic is deleted."""
        self._named.pop(topic, None)

    def names(self, topic: str, index: int) -> bool:
        """Whether the replica here is throttled."""
        if not self._named or topic not in self._named:
            return False
        named = self._named[topic]
        return named is None or index in named

    def holds(self, topic: str, index: int) -> bool:
        """Whether an out-of-sync replica must wait now."""
        return self.names(topic, index) and self.is_exceeded

    @property
    def is_exceeded(self) -> bool:
        """The rate is above the quota."""
        return self._quota.bytes_a_second(self._monotonic_ms()) > self._rate()

    def record(self, topic: str, index: int, size_bytes: int) -> None:
        """Count the bytes of a replica, if it is throttled."""
        if size_bytes and self.names(topic, index):
            self._quota.record(size_bytes, self._monotonic_ms())
