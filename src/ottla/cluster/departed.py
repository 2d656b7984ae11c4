"""Recently departed brokers: Metadata still lists them, with their addresses.

If one Metadata response drops a broker and moves its partitions, librdkafka may lose them for a
second: it may remove the broker's handle before it has moved the partitions, which then have no
leader until its next request. So Metadata lists a broker for a short time after its registration
ends. Apache Kafka does so for 9 s, because it notices a death only when the session ends. Leaders,
replicas, coordinators and DescribeCluster are not affected.
"""

from __future__ import annotations

from typing import Final

from ottla.controller.image import BrokerAppeared, BrokerImage, BrokerVanished, MetadataDelta
from ottla.runtime.clock import Clock

VISIBLE_MS: Final = 2_000
"""Clients ask as soon as a connection ends, and again until a leader is elected."""


class DepartedBrokers:
    """The brokers that departed a moment ago. Used in the event loop's thread only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._registered: dict[int, BrokerImage] = {}
        self._departed: dict[int, tuple[int, BrokerImage]] = {}
        """Each with the time until which it is visible."""

    def notified(self, delta: MetadataDelta) -> None:
        """Subscribed to the view."""
        match delta:
            case BrokerAppeared(broker):
                self._registered[broker.broker_id] = broker
                self._departed.pop(broker.broker_id, None)
            case BrokerVanished(broker_id):
                former = self._registered.pop(broker_id, None)
                if former is not None:
                    until_ms = self._clock.monotonic_ms() + VISIBLE_MS
                    self._departed[broker_id] = until_ms, former

    def visible(self) -> tuple[BrokerImage, ...]:
        """The brokers that Metadata lists in addition to the registered ones."""
        if not self._departed:
            return ()
        now_ms = self._clock.monotonic_ms()
        self._departed = {
            broker_id: (until_ms, broker)
            for broker_id, (until_ms, broker) in self._departed.items()
            if now_ms < until_ms
        }
        return tuple(broker for _, broker in self._departed.values())
