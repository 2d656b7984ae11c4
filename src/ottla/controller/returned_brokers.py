"""When a broker that has come back gets its leaderships back, before the periodic check.

After a restart other brokers lead the partitions of this one, and Apache Kafka leaves it so until
its next check (leader.imbalance.check.interval.seconds, five minutes). Here a broker is due
- once it has been registered for SETTLED_MS, and
- once it is in sync in all partitions it is the preferred leader of, or CATCH_UP_MS have passed;
  partitions where it is not in sync by then wait for the periodic check,
- and at most once within the interval of that check: a broker that keeps failing does not move its
  leaderships each time.
Producers see one change of leader for each partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ottla.controller.image import ClusterImage

SETTLED_MS: Final = 3_000
CATCH_UP_MS: Final = 60_000


@dataclass(slots=True)
class _Seen:
    epoch: int
    since_ms: int
    is_done: bool = False


@dataclass(slots=True)
class ReturnedBrokers:
    """What one controller knows about returning brokers. Times are monotonic."""

    interval_ms: int
    """The interval of the periodic check."""
    _seen: dict[int, _Seen] = field(default_factory=dict)
    _given_back_ms: dict[int, int] = field(default_factory=dict)

    def due(self, image: ClusterImage, now_ms: int) -> frozenset[int]:
        """The brokers that should get their leaderships back now; each is returned once."""
        for broker_id, broker in image.brokers.items():
            seen = self._seen.get(broker_id)
            if seen is None or seen.epoch != broker.epoch:
                self._seen[broker_id] = _Seen(broker.epoch, now_ms)
        for gone in self._seen.keys() - image.brokers.keys():
            del self._seen[gone]
        waiting = {
            broker_id: seen
            for broker_id, seen in self._seen.items()
            if not seen.is_done and now_ms - seen.since_ms >= SETTLED_MS
        }
        if not waiting:
            return frozenset()
        behind = _not_in_sync(image)
        due = set()
        for broker_id, seen in waiting.items():
            if broker_id in behind and now_ms - seen.since_ms < CATCH_UP_MS:
                continue
            seen.is_done = True
            before_ms = self._given_back_ms.get(broker_id)
            if before_ms is None or now_ms - before_ms >= self.interval_ms:
                due.add(broker_id)
        return frozenset(due)

    def gave_back(self, broker_ids: Iterable[int], now_ms: int) -> None:
        """Record that these brokers got leaderships back."""
        self._given_back_ms.update(dict.fromkeys(broker_ids, now_ms))


def _not_in_sync(image: ClusterImage) -> set[int]:
    """The brokers that are out of sync in a partition they are the preferred leader of."""
    return {
        state.replicas[0]
        for topic in image.topics.values()
        for state in topic.partitions
        if state.replicas[0] not in state.isr
    }
