"""The cluster as this broker knows it: the image, and the parts that are notified of changes.

Metadata deltas come from the controller's own plans if this broker is the controller, and from
`metadata_fetcher` otherwise. Each delta is applied to the image first. Then the subscribers are
notified. Deltas are handled one at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from ottla.config.broker import BrokerConfig
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ClusterImage,
    MetadataDelta,
)
from ottla.runtime.slices import Slices
from ottla.runtime.waiting import Watcher, wake

Subscriber = Callable[[MetadataDelta], Awaitable[None] | None]

DELTAS_A_SLICE: Final = 20
"""At 50 to 500 us each: another broker may have created or deleted thousands of topics."""

log = logging.getLogger("ottla.cluster")


class ClusterView:
    """This broker's view of the cluster. For the event loop's thread only."""

    def __init__(self, config: BrokerConfig) -> None:
        self.image = ClusterImage("")
        self.waiters: dict[Watcher, None] | None = None
        self._config = config
        self._ignored: tuple[str, ...] = ()
        """Why dynamic settings are ignored, as logged."""
        self._subscribers: list[Subscriber] = []
        self._observers: list[Callable[[MetadataDelta], None]] = []
        self._applying = asyncio.Lock()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Notify `subscriber` of every later delta, after the delta is in the image.

        If it returns an awaitable, the request that caused the delta is answered after that.
        """
        self._subscribers.append(subscriber)

    def observe(self, observer: Callable[[MetadataDelta], None]) -> None:
        """Show `observer` every later delta before it is in the image."""
        self._observers.append(observer)

    async def apply(self, deltas: Sequence[MetadataDelta]) -> None:
        """Apply all of the deltas in this order and notify the subscribers."""

        async def find() -> Iterable[MetadataDelta]:
            return deltas

        await self.apply_in_turn(find)

    async def apply_in_turn(self, find: Callable[[], Awaitable[Iterable[MetadataDelta]]]) -> None:
        """Apply the deltas that `find` returns.

        `find` is called when no other deltas are being applied: deltas that depend on the image
        (the differences to another image) must be computed then. The image does not change until
        `find` returns.
        """
        async with self._applying:
            slices = Slices(DELTAS_A_SLICE)
            for delta in await find():
                await slices.count()
                for observer in self._observers:
                    observer(delta)
                self.image.apply(delta)
                if isinstance(delta, BrokerConfigChanged):
                    self._reconfigure()
                for subscriber in self._subscribers:
                    waiting = subscriber(delta)
                    if waiting is not None:
                        await waiting
            wake(self)

    async def between_deltas(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does the work when no deltas are being applied, and lets none be applied meanwhile."""
        async with self._applying:
            await work()

    def _reconfigure(self) -> None:
        """Applies the dynamic settings of the image to this broker.

        The controller does not know every broker's static settings, and Kafka's tools may have
        stored what no Ottla has. As in Kafka's DynamicBrokerConfig, a broker logs what it cannot
        take, and goes on.
        """
        own = self.image.config(str(self._config.id))
        done = self._config.reconfigure(self.image.config(EVERY_BROKER).values, own.values)
        if done.changed:
            log.info("dynamic settings changed: %s", ", ".join(done.changed))
        for reason in done.ignored:
            if reason not in self._ignored:
                log.error("a dynamic setting is ignored: %s", reason)
        self._ignored = done.ignored
