"""One broker, put together: what is opened in which order, and closed in the other.

Start: the coordination tree, the data folder's lock, the image, the logs, the groups, the
listeners, the registration: a broker is registered when it can answer. One broker alone keeps the
tree in its folder, so there the lock comes first. Each step that fails leaves nothing behind that
would damage the folder.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from random import Random, SystemRandom

from ottla.broker.background import Background
from ottla.broker.clock import Clock, SystemClock
from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller, StartError
from ottla.broker.controller_client import reserve_producer_ids
from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.departed import DepartedBrokers
from ottla.broker.disk_reads import DiskReads
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.forwarding import ControllerForwarding
from ottla.broker.group_log import group_coordinators
from ottla.broker.in_sync_care import InSyncCare
from ottla.broker.in_sync_changes import InSyncChanges
from ottla.broker.journey import Journey
from ottla.broker.log_care import LogCare
from ottla.broker.membership import Membership, Tree
from ottla.broker.metadata_applier import MetadataApplier
from ottla.broker.partitions import Partitions
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.replica_fetchers import ReplicaFetchers, leader_throttle
from ottla.broker.storage_failure import StorageFailure
from ottla.broker.topic_creation import TopicCreation
from ottla.broker.waiting import wake
from ottla.config import BrokerConfig
from ottla.config.default import log_config, topic_config
from ottla.config.listener import Endpoint
from ottla.config.topic import TopicConfig
from ottla.controller.image import ClusterImage
from ottla.coordination.embedded import EmbeddedTree
from ottla.log.broker_metadata import known_cluster_id
from ottla.log.config import LogConfig
from ottla.log.store import LogStore
from ottla.network.connection_limits import ConnectionLimits
from ottla.network.dispatcher import Dispatcher
from ottla.network.handlers import Handlers
from ottla.network.listener import Listener
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError

logger = logging.getLogger("ottla.node")

CLOSE_GRACE_MS = 5_000


class Node:
    """What request handlers find under `context.broker`."""

    def __init__(
        self,
        config: BrokerConfig,
        handlers: Handlers,
        *,
        clock: Clock | None = None,
        tree: Tree | None = None,
        random: Random | None = None,
    ) -> None:
        """`clock`, `tree` and `random` default to the machine's and the configured ensemble."""
        self.config = config
        self.clock = clock or SystemClock()
        self._tree = tree
        self.random = random or SystemRandom()
        self.api_versions = handlers.advertised
        self.features_epoch = 0
        self.partitions = Partitions(lambda: self.image)
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            lambda: self.random.randrange(1, 2**31),
        )
        self.disk_reads = DiskReads()
        self.connection_limits = ConnectionLimits(config)
        self.journey = Journey(self.clock, enabled=config.ottla_journey_enable)
        self.care = LogCare(self)
        self.view = ClusterView(config)
        self.peers = Peers(config, self._inter_broker_endpoint)
        self.in_sync_changes = InSyncChanges(self)
        self.in_sync_care = InSyncCare(
            self.clock,
            config.replica_lag_time_max_ms,
            lambda: self.partitions,
            self.in_sync_changes.propose,
        )
        self.replica_fetchers = ReplicaFetchers(self)
        self.leader_throttle = leader_throttle(self)
        self.storage_failure = StorageFailure(self)
        self.membership: Membership
        self.controller = Controller(self, random=self.random)
        self.topic_creation = TopicCreation(self)
        self.departed = DepartedBrokers(self.clock)
        self.view.subscribe(self.departed.told)
        self.groups: GroupCoordinators
        self.producer_ids: ProducerIds
        self.store: LogStore
        self.handlers = handlers
        self._listeners: list[Listener] = []
        self._dispatcher = Dispatcher(self, handlers, self._forwarding())
        self._opened = AsyncExitStack()
        self.closing = False
        """The broker is about to stop: who waits is answered at once."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it now."""
        return self.view.image

    def _inter_broker_endpoint(self, broker_id: int) -> Endpoint | None:
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return None
        return broker.inter_broker_endpoint(self.config.inter_broker_listener)

    def _forwarding(self) -> ControllerForwarding:
        return ControllerForwarding(
            self.config.id,
            self.peers,
            lambda: self.image,
            is_controller=lambda: self.controller.active,
            is_closing=lambda: self.closing,
        )

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where clients reach this broker: what is advertised, with the ports really bound."""
        return tuple(listener.reached_at for listener in self._listeners)

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
        if self.config.zookeeper_connect:
            await self._open_in_ensemble(opening)
        else:
            await self._open_alone(opening)
        await self.membership.first_image()
        self.store.open_logs(self.log_config, self.clock.now_ms())
        applier = MetadataApplier(self)
        opening.push_async_callback(self._stop_following)
        await applier.open_all()
        opening.callback(self._close_logs)
        opening.callback(self.disk_reads.close)
        if not self.store.was_clean:
            # A log that recovery has cut ends before its old recovery point: a second crash must
            # not take what is written next for flushed.
            await asyncio.to_thread(self.store.checkpoint(self.high_watermarks()).run)
        self.journey.start()
        opening.push_async_callback(self.journey.close)
        self.care.start()
        opening.push_async_callback(self.care.close)
        # Again, before journeys, care and logs are closed: what is copied goes through them all.
        opening.push_async_callback(self._stop_following)
        self.producer_ids = ProducerIds(lambda: reserve_producer_ids(self))
        self.groups = group_coordinators(self)
        self.groups.start()
        self.view.subscribe(applier.tell)
        self.in_sync_changes.start()
        opening.push_async_callback(self.in_sync_changes.close)
        self.in_sync_care.start()
        opening.push_async_callback(self.in_sync_care.close)
        # Again, as the first thing at the stop: what was opened last is closed first.
        opening.push_async_callback(self._stop_serving)
        if self.config.zookeeper_connect:
            # Others look for it as soon as it is registered.
            await self._serve()
            await self.membership.register()
        else:
            await self.membership.register()
            await self._serve()
        self.membership.start()
        await self.membership.seen()
        if self.config.zookeeper_connect:
            early = Background(logger, "the first producer ids")
            early.spawn(self._first_producer_ids())
            opening.push_async_callback(early.close)
        opening.push_async_callback(self._leave)

    async def _first_producer_ids(self) -> None:
        with suppress(ApiError):  # no controller now; the first producer makes it asked again
            await self.producer_ids.fill()

    async def _stop_following(self) -> None:
        await self.replica_fetchers.close()
        self.peers.close()

    async def _serve(self) -> None:
        for listener in self._listeners:
            await listener.start()

    async def _open_in_ensemble(self, opening: AsyncExitStack) -> None:
        """A session first, as it says which cluster the folder must belong to."""
        config = self.config
        self.membership = Membership(self, self._tree or zookeeper_tree(config), random=self.random)
        opening.push_async_callback(self.membership.close)
        known = known_cluster_id(config.data_folder)
        cluster_id = await self.membership.connect(known, may_found=known is None)
        self.store = LogStore.open(
            config.data_folder, node_id=config.id, cluster_id=cluster_id, random=self.random
        )
        opening.callback(self.store.release)
        opening.push_async_callback(self._stop_serving)
        await self._listen()

    async def _open_alone(self, opening: AsyncExitStack) -> None:
        """The folder's lock first, as the tree lies in the folder; and nothing is written before
        the ports are had.
        """
        config = self.config
        self.store = LogStore.open(config.data_folder, node_id=config.id, random=self.random)
        opening.callback(self.store.release)
        opening.push_async_callback(self._stop_serving)
        await self._listen()
        tree = EmbeddedTree(config.data_folder)
        opening.push_async_callback(tree.close)
        self.membership = Membership(self, tree, random=self.random)
        opening.push_async_callback(self.membership.close)
        known = self.store.metadata.cluster_id
        cluster_id = await self.membership.connect(known, may_found=not self.store.has_partitions)
        if cluster_id != known:
            raise StartError(
                f"the data folder belongs to cluster {known}, "
                f"its coordination store to {cluster_id}"
            )

    async def _leave(self) -> None:
        """Hands leadership over before anything is closed; then the others see that it is gone."""
        if self.config.zookeeper_connect:
            if self.config.controlled_shutdown_enable:
                await self.membership.leave()
            await self.membership.close()

    async def _listen(self) -> None:
        """Binds all listeners, so that a port in use is found before anything is written."""
        connection_ids = itertools.count(1)
        for endpoint in self.config.endpoints:
            listener = Listener(
                endpoint,
                self.config,
                self._dispatcher,
                self.connection_limits,
                next_connection_id=connection_ids.__next__,
                monotonic_ms=self.clock.monotonic_ms,
            )
            self._listeners.append(listener)
            await listener.listen()
        self.config.listens_on([each.bound_to for each in self._listeners], self.endpoints)

    async def _stop_serving(self) -> None:
        self.closing = True
        for listener in self._listeners:
            listener.stop_accepting()
        if self._has_groups:
            self.groups.close()
        for partition in self.partitions:
            wake(partition)
        for listener in self._listeners:
            await listener.close(CLOSE_GRACE_MS)

    def _close_logs(self) -> None:
        """Raises nothing: a disk that refuses now means that the next start has to recover."""
        try:
            self.store.close(self.high_watermarks())
        except ApiError as error:
            logger.error("the data folder is not closed cleanly: %s", error)

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
        return self._dispatcher.requests


def zookeeper_tree(config: BrokerConfig) -> Tree:
    """The ensemble of a cluster; its client is imported only where there is one."""
    from ottla.coordination.zookeeper import ZooKeeperTree

    assert config.zookeeper_connect is not None
    session_ms = config.zookeeper_session_timeout_ms
    return ZooKeeperTree(
        config.zookeeper_connect,
        session_timeout_ms=session_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms or session_ms,
    )
