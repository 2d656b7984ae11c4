"""One broker: builds its parts, opens them in order, and closes them in reverse order.

Start: the coordination tree, the data folder's lock, the image, the logs, the groups, the
listeners, the registration: a broker registers when it can answer. A single broker keeps the tree
in its folder, so there the lock comes first. A step that fails leaves nothing behind that would
damage the folder.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from random import Random, SystemRandom
from typing import Any
from uuid import UUID

from ottla.cluster.acl_store import AclStore
from ottla.cluster.alter_partition_sender import AlterPartitionSender
from ottla.cluster.broker_node import Folder
from ottla.cluster.client_quotas import ClientQuotas
from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.controller import Controller
from ottla.cluster.controller_client import ControllerClient
from ottla.cluster.dead_letters import DeadLetters
from ottla.cluster.departed import DepartedBrokers
from ottla.cluster.errors import StartError
from ottla.cluster.forwarding import ControllerForwarding
from ottla.cluster.membership import Membership, Tree
from ottla.cluster.metadata_applier import MetadataApplier
from ottla.cluster.partition_opener import PartitionOpener
from ottla.cluster.producer_ids import ProducerIds
from ottla.cluster.registration import Registration
from ottla.cluster.strays import READ_AGAIN_MS, Strays
from ottla.cluster.topic_creation import TopicCreation
from ottla.cluster.topic_settings import TopicSettings
from ottla.config import BrokerConfig, ConfigError
from ottla.config.broker_authorizer import super_users
from ottla.config.listener import Endpoint
from ottla.config.listener_security import tls_options
from ottla.controller import layout
from ottla.controller.deletion_notes import noted_ids
from ottla.controller.features import SHARE_VERSION
from ottla.controller.image import BrokerConfigChanged, FeaturesChanged, MetadataDelta
from ottla.controller.older_tree import make_up
from ottla.controller.users import credential
from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.store_copy import FILE_NAME as TREE
from ottla.coordinator.coordinators import Coordinators
from ottla.network.authorization import Authorization
from ottla.network.broker_identity import BrokerIdentity
from ottla.network.client_session import ClientSession
from ottla.network.connection_limits import ConnectionLimits
from ottla.network.dispatcher import Dispatcher
from ottla.network.handlers import Handlers
from ottla.network.listener import Listener
from ottla.network.newcomers import Newcomers
from ottla.network.own_request import answer_own
from ottla.network.peer_security import peer_security
from ottla.network.peers import Peers
from ottla.network.throttling import Throttling
from ottla.node.commit_recording import CommitRecording
from ottla.node.coordinator_wiring import (
    Brokers,
    group_coordinator,
    group_runtime,
    transaction_parts,
)
from ottla.node.share_wiring import share_parts, shared_partitions
from ottla.protocol.errors import ApiError
from ottla.replica.disk_reads import DiskReads
from ottla.replica.fetch_session import FetchSessions
from ottla.replica.isr_maintenance import IsrMaintenance
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partitions import Partitions
from ottla.replica.replica_fetchers import ReplicaFetchers, leader_throttle
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock, SystemClock
from ottla.runtime.cpu_thread import CpuThread
from ottla.runtime.slices import until_done
from ottla.runtime.waiting import wake
from ottla.security.authorizer import Authorizer
from ottla.security.sasl.scram import ScramCredential
from ottla.storage import lost_sync
from ottla.storage.broker_metadata import FILE_NAME as IDENTITY
from ottla.storage.broker_metadata import known_cluster_id
from ottla.storage.log_maintenance import LogMaintenance
from ottla.storage.log_store import LogStore
from ottla.storage.storage_failure import StorageFailure
from ottla.timelines.recorder import TimelineRecorder

logger = logging.getLogger("ottla.node")

CLOSE_GRACE_MS = 5_000
REQUEST_TIMEOUT_MS = 30_000
"""Kafka's default of request.timeout.ms."""


class Node:
    """Request handlers get it as `context.broker`."""

    def __init__(
        self,
        config: BrokerConfig,
        handlers: Handlers,
        *,
        clock: Clock | None = None,
        tree: Tree | None = None,
        random: Random | None = None,
    ) -> None:
        """`clock` and `random` default to the machine's, `tree` to the configured one."""
        self.config = config
        self.clock = clock = clock or SystemClock()
        self.authorization = _authorization(config, clock)
        """What clients may do; None if everything, because there is no authorizer."""
        self.acls: AclStore | None = None
        handlers = _handlers(handlers, self.authorization)
        self.random = random = random or SystemRandom()
        self._tree = tree
        self._handlers = handlers
        self.api_versions = handlers.advertised
        self.closing = False
        """The broker is about to stop: waiting requests are answered at once."""
        self.view = ClusterView(config)
        self.image = self.view.image
        """The cluster as this broker knows it now."""
        self._registration = Registration(config.id)
        self.identity = BrokerIdentity(
            config.id,
            random,
            config.inter_broker_listener,
            [each.name for each in config.endpoints],
        )
        """Which broker this is, for other brokers."""
        self.peers = Peers(
            config, self._inter_broker_endpoint, peer_security(config), self.identity
        )
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            lambda: random.randrange(1, 2**31),
            lambda wait: until_done(wait.end),
        )
        self.disk_reads = DiskReads()
        self.connection_limits = ConnectionLimits(config)
        self.timelines = TimelineRecorder(clock, enabled=config.ottla_journey_enable)
        self.partitions = Partitions(lambda: self.image)
        self.topic_settings = TopicSettings(config, self.image)
        self.storage_failure = StorageFailure(config.id, self.image, clock)
        self.leader_throttle = leader_throttle(config, clock)
        client = ControllerClient(
            self._registration, self.image, self.peers, partial(answer_own, self, handlers)
        )
        self._alter_partition_sender = AlterPartitionSender(
            self._registration, self.image, clock, client
        )
        self._isr_maintenance = IsrMaintenance(
            clock,
            config.replica_lag_time_max_ms,
            lambda: self.partitions,
            self._alter_partition_sender.propose,
        )
        self.topic_creation = TopicCreation(config, clock, self.image, client)
        self.producer_ids = ProducerIds(client.reserve_producer_ids)
        self.controller = Controller(config, self.view, clock, self.peers, random=random)
        self.throttling = Throttling(config, clock, self.is_broker)
        """The quotas of clients."""
        self.departed = DepartedBrokers(clock)
        self._commits = CommitRecording(self.partitions, lambda: self.image, self.timelines, clock)
        groups, self.histories = group_runtime(
            config, self.partitions, clock, lambda: self.image, self._commits
        )
        parts = transaction_parts(
            config,
            lambda: self.image,
            self.partitions,
            clock,
            Brokers(config.id, self._ask_broker),
            self.producer_ids.next,
        )
        self.cpu_thread = CpuThread()
        self.shares = share_parts(
            config,
            lambda: self.image,
            self.partitions,
            clock,
            Brokers(config.id, self._ask_broker),
            self.topic_creation.ensure_share_topic,
        )
        self.groups = group_coordinator(
            groups,
            config,
            lambda: self.image,
            parts.verifier,
            random,
            self.cpu_thread.run,
            self.shares.persister,
            Brokers(config.id, self._ask_broker),
            self.histories,
        )
        self.transactions, self.transaction_verifier = parts.coordinator, parts.verifier
        self._marker_sender = parts.sender
        self.shared_partitions = shared_partitions(
            config,
            lambda: self.image,
            self.partitions,
            clock,
            self.disk_reads,
            self.shares.persister,
            DeadLetters(
                config,
                lambda: self.image,
                self.topic_settings,
                clock,
                self.disk_reads,
                lambda broker_id, request: self._ask_broker(broker_id, "dead-letters", request),
                client.create_missing_topics,
                random,
            ),
        )
        self.coordinators = Coordinators([groups, parts.runtime, self.shares.runtime])
        self.membership: Membership
        self.store: LogStore
        self.log_maintenance: LogMaintenance
        self.strays: Strays
        self.replica_fetchers: ReplicaFetchers
        self._applier: MetadataApplier
        self._ousted_because: str | None = None
        self._end: Callable[[], None] = lambda: None
        self._listeners: list[Listener] = []
        self._dispatcher = Dispatcher(
            self,
            handlers,
            self._forwarding(),
            cpu_thread=self.cpu_thread,
            throttling=self.throttling,
            is_broker=self.is_broker,
        )
        self._opened = AsyncExitStack()
        self._tree_is_older = False
        """The coordination tree is a copy that may lack its last changes."""

    async def _ask_broker(self, broker_id: int, purpose: str, request: Any) -> Any:
        """Raises PeerError; another broker has the time of request.timeout.ms for its answer."""
        if broker_id == self.config.id:
            return await answer_own(self, self._handlers, request, f"broker-{broker_id}-{purpose}")
        return await self.peers.peer(broker_id, purpose).ask(request, REQUEST_TIMEOUT_MS)

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

    def is_broker(self, session: ClientSession) -> bool:
        """Whether a broker of the cluster, or this one itself, is at the other end."""
        if self.authorization is not None:
            return self.authorization.is_broker(session)
        return session.is_own or session.broker_id is not None

    def ends_by_itself(self, end: Callable[[], None]) -> None:
        """`end` will be called if this broker must stop: see `end_reason`. Call it before `start`:
        the broker begins to replicate then, and the disk may be full already.
        """
        self._end = self.storage_failure.end = end

    @property
    def end_reason(self) -> str | None:
        """Why this broker must stop, although nobody told it to; one line."""
        return self._ousted_because or self.storage_failure.reason

    def _reconfigured(self, delta: MetadataDelta) -> Awaitable[None] | None:
        if isinstance(delta, FeaturesChanged) and not delta.levels.get(SHARE_VERSION):
            self.shared_partitions.sessions.end_all()
        if not isinstance(delta, BrokerConfigChanged):
            return None
        self.log_maintenance.reconfigured()
        return self._listeners_reconfigured()

    async def _first_image(self) -> None:
        await self.membership.first_image()
        await self._listeners_reconfigured(is_first=True)

    async def _listeners_reconfigured(self, *, is_first: bool = False) -> None:
        """`is_first`: they are not used yet."""
        tls = self.peers.security.tls
        for listener in self._listeners:
            has_these = await listener.reconfigured(is_first=is_first)
            if tls is not None and has_these and listener.is_between_brokers:
                tls.change(tls_options(self.config.security_of(listener.endpoint.name)))
        self.connection_limits.changed()

    async def check_listeners(self, values: Mapping[str, str], *, reads_again: bool) -> None:
        """Raises ConfigError if the listeners cannot take these dynamic settings of this broker.
        `reads_again`: certificates in files that have changed are used at once.
        """
        for listener in self._listeners:
            security = self.config.security_with(listener.endpoint.name, values)
            await listener.check(security, reads_again=reads_again)

    async def _ousted(self, why: str) -> None:
        """Another process has this broker's id, and may lead what this one leads."""
        self._ousted_because = why
        logger.error("%s", why)
        await self._applier.give_up()
        self._end()

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """What the cluster keeps of a user's password."""
        return credential(self.image, mechanism, user)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where clients reach this broker: the advertised addresses, with the bound ports."""
        return tuple(listener.reached_at for listener in self._listeners)

    @property
    def certificate_ends_s(self) -> dict[str, int]:
        """When the certificates of listeners expire, in s since 1970, by the listener's name."""
        ends = ((each.endpoint.name, each.certificate_ends_s) for each in self._listeners)
        return {name: end for name, end in ends if end is not None}

    async def start(self) -> None:
        """Opens everything and begins to serve.

        Raises ConfigError, DataFolderError, StartError, StoreError or OSError, each with a one-line
        message for the operator. What was opened is then closed again.
        """
        async with AsyncExitStack() as opening:
            await self._open(opening)
            self._opened = opening.pop_all()

    async def close(self) -> None:
        """A clean stop: answers pending requests and writes everything to the disk."""
        await self._opened.aclose()

    async def _open(self, opening: AsyncExitStack) -> None:
        config = self.config
        self.view.subscribe(self.departed.notified)
        self.view.subscribe(ClientQuotas(self.throttling).notified)
        if config.zookeeper_connect:
            await self._open_in_ensemble(opening)
        else:
            await self._open_alone(opening)
        if self.authorization is not None:
            self.acls = AclStore(self.authorization.authorizer, lambda: self.membership.session)
            await self.acls.start()
            opening.push_async_callback(self.acls.close)
        await self._first_image()
        self.store.open_logs(self.topic_settings.log_config, self.clock.now_ms())
        self._registration.previous_epoch = self.store.previous_epoch
        self.log_maintenance = LogMaintenance(
            config, self.clock, self.store, self.partitions, self.storage_failure
        )
        self.replica_fetchers = ReplicaFetchers(
            config,
            self.clock,
            self.peers,
            broker_epoch=lambda: self._registration.broker_epoch,
            truncated=self.log_maintenance.was_truncated,
        )
        opening.push_async_callback(self._stop_following)
        self.strays = Strays(
            self.store,
            self.log_maintenance,
            self.clock,
            self._noted_deletions,
            self._topic_deleted,
            recorded=self._commits,
            read_again_ms=READ_AGAIN_MS if config.zookeeper_connect else 0,
        )
        applier = self._applier = self._metadata_applier()
        if self._tree_is_older:
            await self._make_up_for_older_tree()
        await applier.open_all()
        opening.callback(self._close_logs)
        opening.callback(self.disk_reads.close)
        if not self.store.was_clean:
            # A log that recovery truncated ends before its old recovery point. After a second
            # crash, records written there next must not count as flushed.
            checkpoint = self.store.checkpoint(self.log_maintenance.high_watermarks())
            await asyncio.to_thread(checkpoint.run)
        self.timelines.start()
        opening.push_async_callback(self._close_recordings)
        self.log_maintenance.start()
        opening.push_async_callback(self.log_maintenance.close)
        self.strays.start()
        opening.push_async_callback(self.strays.close)
        applier.start()
        opening.push_async_callback(applier.close)
        # Again, before timelines, maintenance and logs close: replica fetchers use them all.
        opening.push_async_callback(self._stop_following)
        self.coordinators.start()
        self.groups.start()
        self.transactions.start()
        self.shares.start()
        self.view.subscribe(applier.apply)
        self.view.subscribe(self._reconfigured)
        self._alter_partition_sender.start()
        opening.push_async_callback(self._alter_partition_sender.close)
        self._isr_maintenance.start()
        opening.push_async_callback(self._isr_maintenance.close)
        # Again, as the first step of the stop: what was opened last is closed first.
        opening.push_async_callback(self._stop_serving)
        if config.zookeeper_connect:
            # Other brokers connect as soon as it is registered.
            await self._serve()
            await self._register()
        else:
            await self._register()
            await self._serve()
        self.membership.start()
        await self.membership.seen()
        if config.zookeeper_connect:
            early = Background(logger, "the first producer ids")
            early.spawn(self._first_producer_ids())
            opening.push_async_callback(early.close)
        opening.push_async_callback(self._leave)

    async def _make_up_for_older_tree(self) -> None:
        image = self.image
        epochs = {
            (name, index): log.epochs.latest
            for (name, index), log in self.store.logs.items()
            if image.partition(name, index) is not None
        }
        raised = await self.controller.carry_out(lambda: make_up(image, self.config.id, epochs))
        logger.warning("the leader epochs of %d partitions were older than their logs'", raised)

    def _metadata_applier(self) -> MetadataApplier:
        opener = PartitionOpener(
            self.store,
            self.topic_settings,
            self.log_maintenance,
            self._partition_host(),
            self.strays,
        )
        return MetadataApplier(
            self._registration,
            self.store.metadata.directory_id,
            self.image,
            self.clock,
            self.partitions,
            opener,
            self.topic_settings,
            self.replica_fetchers,
            self.leader_throttle,
            self.coordinators,
            self._topic_deleted,
            self.storage_failure,
            self.strays,
            self.view.between_deltas,
        )

    async def _topic_deleted(self, topic: str, topic_id: UUID | None) -> None:
        await self.groups.topic_deleted(topic, topic_id)
        await self.shares.coordinator.topic_deleted(topic_id)
        await self._commits.topic_deleted(topic_id)

    async def _noted_deletions(self) -> frozenset[UUID]:
        return noted_ids(await self.membership.session.children(layout.DELETIONS))

    def _partition_host(self) -> PartitionHost:
        def live_epoch(broker_id: int) -> int | None:
            broker = self.image.brokers.get(broker_id)
            return None if broker is None else broker.epoch

        return PartitionHost(
            broker_id=self.config.id,
            clock=self.clock,
            timelines=self.timelines,
            write_failed=self.storage_failure.write_failed,
            lag_max_ms=self.config.replica_lag_time_max_ms,
            live_epoch=live_epoch,
            eligible=self._isr_maintenance.check,
            remove=self.log_maintenance.remove_later,
            load=self.log_maintenance.load_later,
        )

    async def _register(self) -> None:
        folder = Folder(self.store.metadata.directory_id, self.store.lock_identity)
        await self.membership.register(self.endpoints, folder)

    async def _first_producer_ids(self) -> None:
        with suppress(ApiError):  # no controller now; the first producer triggers a retry
            await self.producer_ids.fill()

    async def _stop_following(self) -> None:
        await self.replica_fetchers.close()
        self.peers.close()

    async def _serve(self) -> None:
        for listener in self._listeners:
            await listener.start()

    async def _open_in_ensemble(self, opening: AsyncExitStack) -> None:
        """Opens a session first: the tree has the cluster id that the folder must have."""
        config = self.config
        self._join(self._tree or zookeeper_tree(config), opening)
        known = known_cluster_id(config.data_folder)
        cluster_id = await self.membership.connect(known, allow_new_cluster=known is None)
        self.store = LogStore.open(
            config.data_folder, node_id=config.id, cluster_id=cluster_id, random=self.random
        )
        self.storage_failure.on_lost_sync = partial(lost_sync.note, self.store.root)
        opening.callback(self.store.release)
        opening.push_async_callback(self._stop_serving)
        await self._listen()

    async def _open_alone(self, opening: AsyncExitStack) -> None:
        """Takes the folder's lock first, because the tree is in the folder, and writes nothing
        before the ports are bound.
        """
        config = self.config
        self.store = LogStore.open(config.data_folder, node_id=config.id, random=self.random)
        self.storage_failure.on_lost_sync = partial(lost_sync.note, self.store.root)
        opening.callback(self.store.release)
        opening.push_async_callback(self._stop_serving)
        await self._listen()
        tree = EmbeddedTree(config.data_folder, self.storage_failure.lost_sync)
        opening.push_async_callback(tree.close)
        self._join(tree, opening)
        known = self.store.metadata.cluster_id
        cluster_id = await self.membership.connect(
            known, allow_new_cluster=not self.store.has_partitions
        )
        self._tree_is_older = tree.may_lack_changes
        if cluster_id != known:
            root = self.store.root
            raise StartError(
                f"{root}/{IDENTITY} has cluster {known}, and {root}/{TREE} has cluster"
                f" {cluster_id}: one of them is damaged or of another folder; put back the right"
                " one, or correct cluster.id"
            )

    def _join(self, tree: Tree, opening: AsyncExitStack) -> None:
        self.membership = Membership(
            self.config,
            self.clock,
            tree,
            self._registration,
            self.view,
            self.controller,
            self.peers,
            identity=self.identity,
            random=self.random,
            on_ousted=self._ousted,
        )
        opening.push_async_callback(self.membership.close)

    async def _leave(self) -> None:
        """Hands over leadership before anything closes, then leaves the cluster."""
        if self.config.zookeeper_connect:
            if self.config.controlled_shutdown_enable:
                await self.membership.leave()
            if self.acls is not None:
                await self.acls.close()  # it reads in the session that ends now
            await self.membership.close()

    async def _listen(self) -> None:
        """Binds all listeners, so that a port in use is detected before anything is written."""
        connection_ids = itertools.count(1)
        newcomers = Newcomers()
        for endpoint in self.config.endpoints:
            listener = Listener(
                endpoint,
                self.config,
                self._dispatcher,
                self.connection_limits,
                throttling=self.throttling,
                newcomers=newcomers,
                credentials=self,
                now_ms=self.clock.now_ms,
                next_connection_id=connection_ids.__next__,
                monotonic_ms=self.clock.monotonic_ms,
            )
            self._listeners.append(listener)
            try:
                await listener.listen()
            except (ConfigError, OSError):
                self.store.withdraw()
                raise
        self.config.listens_on([each.bound_to for each in self._listeners], self.endpoints)

    async def _close_recordings(self) -> None:
        await self.histories.close()
        await self.timelines.close()

    async def _stop_serving(self) -> None:
        self.closing = True
        for listener in self._listeners:
            listener.stop_accepting()
        self.topic_creation.close()
        self.groups.close()
        self.transactions.close()
        self.shares.close()
        self.shared_partitions.close()
        self._marker_sender.close()
        self.transaction_verifier.close()
        self.coordinators.close()
        self.storage_failure.close()
        for partition in self.partitions:
            wake(partition)
        for listener in self._listeners:
            await listener.close(CLOSE_GRACE_MS)
        self.cpu_thread.close()

    def _close_logs(self) -> None:
        """Raises nothing: if the disk fails now, the next start recovers."""
        if self.storage_failure.has_lost_sync:
            self.store.release()  # this is no clean stop
            return
        try:
            self.store.close(
                self.log_maintenance.high_watermarks(), self._registration.broker_epoch
            )
        except ApiError as error:
            logger.error("cannot close the data folder cleanly: %s", error)
            self.storage_failure.check_sync(error)

    def last_request(self) -> str:
        """For any thread: which request was begun last, of whom."""
        return self._dispatcher.last_request()

    def request_counts(self) -> Counter[int]:
        """The number of requests so far, by key."""
        return self._dispatcher.requests


def _authorization(config: BrokerConfig, clock: Clock) -> Authorization | None:
    if not config.authorizer_class_name:
        return None
    authorizer = Authorizer(
        super_users(config.super_users),
        everyone_without_acls=config.allow_everyone_if_no_acl_found,
    )
    return Authorization(authorizer, clock.monotonic_ms)


def _handlers(handlers: Handlers, authorization: Authorization | None) -> Handlers:
    if authorization is None:
        return handlers
    assert handlers.authorized is not None
    return handlers.authorized(handlers)


def zookeeper_tree(config: BrokerConfig) -> Tree:
    """The cluster's ensemble. kazoo is imported only if an ensemble is configured."""
    from ottla.coordination.zookeeper import ZooKeeperTree

    assert config.zookeeper_connect is not None
    session_ms = config.zookeeper_session_timeout_ms
    return ZooKeeperTree(
        config.zookeeper_connect,
        session_timeout_ms=session_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms or session_ms,
    )
