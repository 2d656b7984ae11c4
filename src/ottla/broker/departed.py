"""Brokers that were registered a moment ago: clients are still told their addresses.

A client that hears in one answer that a broker is gone and that others lead what it led may trip:
librdkafka takes the broker's handle apart while the partitions move away from it, and where the
first is faster they are led by nobody, for it, until it asks again a second later. So Metadata
names a broker for a little longer than it is registered; Apache Kafka, which notices a death only
by the end of the session, does for 9 s. What is told of leaders, replicas and coordinators does not
know of it, nor does DescribeCluster.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.clock import Clock
from ottla.controller.image import BrokerAppeared, BrokerImage, BrokerVanished, MetadataDelta

NAMED_STILL_MS: Final = 2_000
"""Clients ask at once when a connection ends, and some more times while nobody is elected yet."""


class DepartedBrokers:
    """See the module's text. For the event loop's thread alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._registered: dict[int, BrokerImage] = {}
        self._departed: dict[int, tuple[int, BrokerImage]] = {}
        """With the time until which each is named."""

    def told(self, delta: MetadataDelta) -> None:
        """A subscriber of the view."""
        match delta:
            case BrokerAppeared(broker):
                self._registered[broker.broker_id] = broker
                self._departed.pop(broker.broker_id, None)
            case BrokerVanished(broker_id):
                former = self._registered.pop(broker_id, None)
                if former is not None:
                    until_ms = self._clock.monotonic_ms() + NAMED_STILL_MS
                    self._departed[broker_id] = until_ms, former

    def named_still(self) -> tuple[BrokerImage, ...]:
        """Those that are to be named beside the registered ones."""
        if not self._departed:
            return ()
        now_ms = self._clock.monotonic_ms()
        self._departed = {
            broker_id: (until_ms, broker)
            for broker_id, (until_ms, broker) in self._departed.items()
            if now_ms < until_ms
        }
        return tuple(broker for _, broker in self._departed.values())
