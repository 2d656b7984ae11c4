"""One broker, put together: what is opened in which order, and closed in the other.

Start: the data folder's lock, the coordination tree, the image, the logs, the groups, the
listeners. Each that fails leaves nothing behind that would damage the folder.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack

from ottla.broker.call import Handlers
from ottla.broker.clock import Clock, SystemClock
from ottla.broker.connection_limits import ConnectionLimits
from ottla.broker.controller import Controller
from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.group_log import group_coordinators
from ottla.broker.journey import Journey
from ottla.broker.log_care import LogCare
from ottla.broker.partitions import Partitions
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.server import Server
from ottla.broker.topic_news import TopicNews
from ottla.broker.waiting import wake
from ottla.config import BrokerConfig
from ottla.config.default import log_config, topic_config
from ottla.config.listener import Endpoint
from ottla.config.topic import TopicConfig
from ottla.controller.embedded import EmbeddedTree
from ottla.controller.image import ClusterImage
from ottla.log.config import LogConfig
from ottla.log.store import LogStore
from ottla.protocol.errors import ApiError

logger = logging.getLogger("ottla.node")

CLOSE_GRACE_MS = 5_000


class Node:
    """What request handlers find under `call.node`."""

    def __init__(self, config: BrokerConfig, handlers: Handlers) -> None:
        self.config = config
        self.clock: Clock = SystemClock()
        self.api_versions = handlers.advertised
        self.features_epoch = 0
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, 2**31)
        )
        self.connection_limits = ConnectionLimits(config)
        self.journey = Journey(self.clock, enabled=config.ottla_journey_enable)
        self.care = LogCare(self)
        self.controller: Controller
        self.groups: GroupCoordinators
        self.producer_ids: ProducerIds
        self.store: LogStore
        self._handlers = handlers
        self._servers: list[Server] = []
        self._opened = AsyncExitStack()
        self._folder_released = False
        self.closing = False
        """The broker is about to stop: who waits is answered at once."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it now."""
        return self.controller.image

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where clients reach this broker: what is advertised, with the ports really bound."""
        return tuple(server.reached_at for server in self._servers)

    async def start(self) -> None:
        """Opens everything and begins to serve.

        Raises ConfigError, DataFolderError, StartError, StoreError or OSError, each of which is
        one line for the person who started it; what was opened is closed again.
        """
        async with AsyncExitStack() as opening:
            await self._open(opening)
            self._opened = opening.pop_all()

    async def close(self) -> None:
        """A clean stop: requests under way are answered, everything is on the disk."""
        await self._opened.aclose()

    async def _open(self, opening: AsyncExitStack) -> None:
        config = self.config
        self.store = LogStore.open(config.data_folder, node_id=config.id)
        opening.callback(self._release_folder)
        opening.push_async_callback(self._stop_serving)
        await self._listen()
        tree = EmbeddedTree(config.data_folder)
        opening.push_async_callback(tree.close)
        self.controller = Controller(
            await tree.connect(),
            config,
            now_ms=self.clock.now_ms,
            cluster_id=self.store.metadata.cluster_id,
        )
        await self.controller.start(self.endpoints)
        opening.push_async_callback(self.controller.close)
        self.store.open_logs(self.log_config, self.clock.now_ms())
        news = TopicNews(self)
        await news.open_all()
        opening.callback(self._close_logs)
        if not self.store.was_clean:
            # A log that recovery has cut ends before its old recovery point: a second crash must
            # not take what is written next for flushed.
            await asyncio.to_thread(self.store.checkpoint(self.high_watermarks()).run)
        self.journey.start()
        opening.push_async_callback(self.journey.close)
        self.care.start()
        opening.push_async_callback(self.care.close)
        self.producer_ids = ProducerIds(self.controller.next_producer_ids)
        self.groups = group_coordinators(self)
        self.groups.start()
        self.controller.subscribe(news.tell)
        # Again, as the first thing at the stop: what was opened last is closed first.
        opening.push_async_callback(self._stop_serving)
        for server in self._servers:
            await server.start()

    async def _listen(self) -> None:
        """Binds all listeners, so that a port in use is found before anything is written."""
        for endpoint in self.config.endpoints:
            server = Server(self, self._handlers, endpoint, self.connection_limits)
            self._servers.append(server)
            await server.listen()
        self.config.listens_on([each.bound_to for each in self._servers], self.endpoints)

    async def _stop_serving(self) -> None:
        self.closing = True
        for server in self._servers:
            server.stop_accepting()
        if self._has_groups:
            self.groups.close()
        for partition in self.partitions:
            wake(partition)
        for server in self._servers:
            await server.close(CLOSE_GRACE_MS)

    def _close_logs(self) -> None:
        """Raises nothing: a disk that refuses now means that the next start has to recover."""
        self._folder_released = True
        try:
            self.store.close(self.high_watermarks())
        except ApiError as error:
            logger.error("the data folder is not closed cleanly: %s", error)

    def _release_folder(self) -> None:
        if not self._folder_released:
            self.store.release()

    @property
    def _has_groups(self) -> bool:
        return hasattr(self, "groups")

    def log_config(self, topic: str) -> LogConfig:
        """The settings in force for the logs of a topic."""
        return log_config(self._overrides(topic), self.config)

    def topic_config(self, topic: str) -> TopicConfig:
        """All settings in force for a topic."""
        return topic_config(self._overrides(topic), self.config)

    def _overrides(self, topic: str) -> Mapping[str, str]:
        image = self.image.topic(topic)
        return {} if image is None else image.overrides

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        return {(each.topic, each.index): each.high_watermark for each in self.partitions}

    def request_counts(self) -> Counter[int]:
        """Requests answered so far, by key."""
        return sum((server.requests for server in self._servers), Counter())
