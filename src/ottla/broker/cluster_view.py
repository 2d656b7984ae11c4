"""The cluster as this broker knows it: the image, and who is told when it changes.

News come from one of two sides, the controller's own plans where this broker is the controller, or
the controller's answers to this broker (`news_follower`). Either way each piece is applied to the
image first and then told to the subscribers, one piece after the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from ottla.broker.waiting import Watcher, wake
from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ClusterImage,
    News,
)

Subscriber = Callable[[News], Awaitable[None] | None]

log = logging.getLogger("ottla.cluster")


class ClusterView:
    """See the module's text. For the event loop's thread alone."""

    def __init__(self, config: BrokerConfig) -> None:
        self.image = ClusterImage("")
        self.waiters: set[Watcher] | None = None
        self._config = config
        self._subscribers: list[Subscriber] = []
        self._telling = asyncio.Lock()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell this one all news to come, after the image has it.

        An awaitable that it returns is awaited before whoever caused the news has its reply.
        """
        self._subscribers.append(subscriber)

    async def tell(self, all_news: Sequence[News]) -> None:
        """Takes in the news in this order, all of them."""
        await self.tell_in_turn(lambda: all_news)

    async def tell_in_turn(self, find: Callable[[], Iterable[News]]) -> None:
        """Takes in what `find` gives when nobody else tells. What depends on the image, as the
        differences to another do, must be found then: a turn may have to be waited for.
        """
        async with self._telling:
            for news in find():
                self.image.apply(news)
                if isinstance(news, BrokerConfigChanged):
                    self._reconfigure_or_say()
                for subscriber in self._subscribers:
                    waiting = subscriber(news)
                    if waiting is not None:
                        await waiting
            wake(self)

    def _reconfigure_or_say(self) -> None:
        """The controller cannot know every broker's static settings: what does not fit here is not
        put in force, as in Kafka's DynamicBrokerConfig, and no other news is lost by it."""
        try:
            self.reconfigure()
        except ConfigError as error:
            log.error("dynamic settings do not fit this broker's own: %s", error)

    def reconfigure(self) -> None:
        """Puts the dynamic settings of the image in force on this broker.

        Raises ConfigError where one does not fit the static ones.
        """
        own = self.image.config(str(self._config.id))
        changed = self._config.reconfigure(self.image.config(EVERY_BROKER).values, own.values)
        if changed:
            log.info("dynamic settings changed: %s", ", ".join(changed))
