"""This broker in its cluster: a session with the coordination tree, the registration, elections.

    /brokers/ids/N   ephemeral; created again if it disappears while this broker runs: `broker_node`
    /controller      ephemeral; its creator is the controller, all others watch it

When a session ends, its nodes are gone; the broker opens a new session and registers again.
Nothing here stops produce and fetch: while the ensemble is unreachable, the broker continues with
the image that it has. Only a broker whose id another process has registered must stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final, Protocol, TypeVar

from ottla.cluster.broker_node import BrokerNode, Folder, taken
from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.controller import Controller, Tenure
from ottla.cluster.deposing import Deposed, answer, depose_controller, is_challenged
from ottla.cluster.errors import IdTakenError, StartError
from ottla.cluster.metadata_fetcher import MetadataFetcher
from ottla.cluster.registration import Registration
from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.features import SUPPORTED, incompatibility
from ottla.controller.first_users import first_users
from ottla.controller.image import NO_LEADER, BrokerAppeared, BrokerImage, MetadataDelta
from ottla.controller.layout import LayoutError
from ottla.controller.loading import first_writes
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import (
    BadVersionError,
    Change,
    ConnectionLostError,
    Coordination,
    CoordinationError,
    Create,
    Event,
    NodeExistsError,
    SessionExpiredError,
    SetData,
)
from ottla.network.broker_identity import BrokerIdentity
from ottla.network.peer import Probe, probe
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError
from ottla.protocol.kafka_uuid import random_uuid, uuid_text
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.security.broker_proof import SECRET_BYTES

T = TypeVar("T")

UNUSABLE: Final = "the cluster's state cannot be used"

logger = logging.getLogger("ottla.membership")

SALT_BYTES: Final = 16
"""Of the password of a first user."""
RETRY_MS: Final = 200
UNUSABLE_RETRY_MS: Final = 2_000
SHORT_MS: Final = 20
NO_CONTROLLER_MS: Final = 3_000
SEEN_WITHIN_MS: Final = 10_000
FIRST_IMAGE_WITHIN_MS: Final = 60_000
LEAVE_WITHIN_MS: Final = 5_000
RECONNECTS_WITHIN_MS: Final = 2_000
SPARED_MS: Final = 5_000
EXPIRY_SLACK_MS: Final = 2_000
"""A session ends up to one tick of the ensemble (tickTime, 2 s) after its timeout."""


class Tree(Protocol):
    """Opens sessions: `EmbeddedTree` or `ZooKeeperTree`."""

    async def connect(self) -> Coordination:
        """Open a session."""


class Membership:
    """The session, the registration and the elections of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        tree: Tree,
        registration: Registration,
        view: ClusterView,
        controller: Controller,
        peers: Peers,
        *,
        identity: BrokerIdentity,
        random: Random,
        on_ousted: Callable[[str], Awaitable[None]],
    ) -> None:
        """`on_ousted` is called, with the reason, if another process has this broker's id: this
        one must acknowledge nothing any more, and stop.
        """
        self.fetcher = MetadataFetcher(registration, view, peers, self._controller_out_of_reach)
        self._config = config
        self._clock = clock
        self._tree = tree
        self._registration = registration
        self._view = view
        self._controller = controller
        self._peers = peers
        self._identity = identity
        self._random = random
        self._returned_at: float | None = None
        """When the last session replaced an expired one, on the loop's clock."""
        self._session: Coordination | None = None
        self._endpoints: Sequence[Endpoint] = ()
        self._folder = Folder("", None)
        self._node = BrokerNode(config.id, self._folder)
        self._registered = False
        self._on_ousted = on_ousted
        self._is_ousted = False
        self._spared: dict[int, float] = {}
        """The last controller that was alive although it refused connections, by the transaction
        that made its node: until when it is not asked again, on the loop's clock."""
        self._check_due = asyncio.Event()
        self._background = Background(logger, "cluster membership")
        view.subscribe(self._notified)

    @property
    def session(self) -> Coordination:
        assert self._session is not None
        return self._session

    def _new_salt(self) -> bytes:
        return self._random.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, "big")

    async def connect(self, known_cluster_id: str | None, *, allow_new_cluster: bool = True) -> str:
        """Opens the first session. Returns the cluster id: the tree's, the folder's, or a new one.

        With `allow_new_cluster` False, the folder belongs to a cluster that must exist: with a tree
        without topics everything in the folder would be set aside. Raises EnsembleError,
        StoreError, CoordinationError; StartError if that cluster is not in the tree.
        """
        self._session = await self._tree.connect()
        try:
            await self._retry_lost(self._check_no_kafka)
            found = await self._retry_lost(lambda: self._found(known_cluster_id, allow_new_cluster))
        except LayoutError as error:
            raise StartError(f"{UNUSABLE}: {error}") from None
        self._view.image.cluster_id = found
        return found

    async def _check_no_kafka(self) -> None:
        """Raises StartError if the cluster's brokers are Apache Kafka's. They would not learn from
        an Ottla controller who leads, and so go on as leaders; nor the other way round.
        """
        registered = await self.session.read_tree(layout.BROKER_IDS)
        registered.pop(layout.BROKER_IDS, None)
        kafkas = [path for path, node in registered.items() if not layout.is_ottla(node.data)]
        # One that registers in a cluster of Ottla is ignored by the controller.
        if kafkas and len(kafkas) == len(registered):
            number = kafkas[0].rpartition("/")[2]
            raise StartError(
                f"broker {number} of this cluster is Apache Kafka: stop every broker of Kafka"
                " before the first one of Ottla (after a crash its registration ends with its"
                " session)"
            )

    async def _found(self, known_cluster_id: str | None, allow_new_cluster: bool) -> str:
        session = self.session
        present = {}
        single = (layout.CLUSTER_ID, layout.CONTROLLER_EPOCH, layout.FEATURES)
        for path in (*layout.LASTING_NODES, *single):
            node = await session.exists(path)
            if node is not None:
                present[path] = node
        if not allow_new_cluster and layout.CLUSTER_ID not in present:
            # As Kafka's InconsistentClusterIdException.
            raise StartError(
                f"the data folder belongs to cluster {known_cluster_id}, but"
                f" {self._config.zookeeper_connect or 'its coordination store'} has no cluster:"
                " check --zookeeper (zookeeper.connect, with its chroot)"
            )
        for write in first_writes(
            present,
            known_cluster_id or uuid_text(random_uuid(self._random)),
            first_users(self._config.ottla_first_users or "", self._new_salt),
        ):
            assert isinstance(write, Create)
            try:
                await session.create(write.path, write.data)
            except NodeExistsError:
                continue  # another broker starts at the same time
        await self._learn_secret(session)
        return layout.read_cluster_id((await session.get(layout.CLUSTER_ID)).data)

    async def _learn_secret(self, session: Coordination) -> None:
        """Reads the secret by which brokers know each other; the first one makes it. Says which
        listener this one uses, before it connects to another.
        """
        self._identity.tree = self
        self._identity.secret = await self.secret()
        path = layout.broker_listener_path(self._config.id)
        data = layout.write_broker_listener(self._config.inter_broker_listener)
        there = await session.exists(path)
        if there is None:
            await session.create(path, data)
        elif there.data != data:
            await session.set(path, data, there.version)

    async def secret(self) -> bytes:
        """The secret by which brokers know each other; made if there is none."""
        session = self.session
        if await session.exists(layout.SECRET) is None:
            made = self._random.randbytes(SECRET_BYTES)
            with suppress(NodeExistsError):  # another broker made it at the same time
                await session.create(layout.SECRET, layout.write_secret(made))
        return layout.read_secret((await session.get(layout.SECRET)).data)

    async def secret_again(self) -> bytes:
        """The secret as it is now; the one from before if it cannot be read."""
        try:
            return await self.secret()
        except LayoutError as error:
            logger.error("%s", error)
            return self._identity.secret

    async def listener_of(self, broker_id: int) -> str | None:
        """Which listener a broker uses at others; None if it has never started."""
        there = await self.session.exists(layout.broker_listener_path(broker_id))
        try:
            return None if there is None else layout.read_broker_listener(there.data)
        except LayoutError as error:
            logger.error("%s", error)
            return None

    async def first_image(self) -> None:
        """Returns when the view has an image: loaded as the controller, or fetched from it.

        Raises StartError if no controller answers in time, or if the cluster's features have levels
        that this software does not support.
        """
        try:
            await self._load_or_fetch_image()
        except LayoutError as error:
            raise StartError(f"{UNUSABLE}: {error}") from None
        reason = incompatibility(self._view.image.features)
        if reason is not None:
            raise StartError(reason)

    async def _load_or_fetch_image(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + FIRST_IMAGE_WITHIN_MS / 1000
        while loop.time() < until:
            await self._retry_lost(self._run_for_controller)
            if self._controller.active:
                return
            if self.fetcher.controller_id != NO_LEADER:
                await self._retry_lost(self._learn_addresses)
                if await self.fetcher.fetch_once(0):
                    return
            await asyncio.sleep(RETRY_MS / 1000)
        raise StartError(
            f"broker {self.fetcher.controller_id}, the controller, does not answer: see its log"
        )

    async def register(self, endpoints: Sequence[Endpoint], folder: Folder) -> None:
        """Registers this broker with its endpoints and its data folder.

        Waits for the session of another process with the same id to end, in case it is dead.
        Raises IdTakenError if it does not.
        """
        self._endpoints, self._folder = endpoints, folder
        self._node = BrokerNode(self._config.id, folder)
        loop = asyncio.get_running_loop()
        wait_ms = self._config.zookeeper_session_timeout_ms + EXPIRY_SLACK_MS
        until = loop.time() + wait_ms / 1000
        is_logged = False
        while True:
            try:
                return await self._retry_lost(self._register)
            except IdTakenError as error:
                if loop.time() > until:
                    raise
                if not is_logged:
                    is_logged = True
                    logger.warning(
                        "node.id=%d is taken by a broker at %s: waiting up to %d s for its session"
                        " to end, in case it is dead",
                        self._config.id, error.address, wait_ms // 1000,
                    )  # fmt: skip
            await asyncio.sleep(RETRY_MS / 1000)

    async def _retry_lost(self, work: Callable[[], Awaitable[T]]) -> T:
        """For the start: does the work, and repeats all of it if the connection is lost or the
        session ends meanwhile. An ensemble that elects its leader, or is delayed on a busy machine,
        is back soon (Kafka's `retryRequestUntilConnected`).

        Raises ConnectionLostError, SessionExpiredError or EnsembleError if it is not back within
        the connection timeout.
        """
        config, loop = self._config, asyncio.get_running_loop()
        within_ms = config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms
        lost_at: float | None = None
        while True:
            try:
                return await work()
            except (ConnectionLostError, SessionExpiredError) as error:
                lost_at = loop.time() if lost_at is None else lost_at
                if loop.time() > lost_at + within_ms / 1000:
                    raise
                logger.info("the coordination tree: %r", error)
                await asyncio.sleep(RETRY_MS / 1000)
                if isinstance(error, SessionExpiredError):
                    self._controller.resign("the session is over")
                    await self._open_session()

    async def _register(self) -> None:
        """Raises IdTakenError, CoordinationError."""
        me = BrokerImage(
            self._config.id,
            tuple(self._endpoints),
            self._config.broker_rack,
            directory_id=self._folder.directory_id,
            first_epoch=self._registration.first_epoch,
            features=SUPPORTED,
            previous_epoch=self._registration.previous_epoch,
        )
        data = layout.write_broker(me, self._clock.now_ms(), self._folder.lock)
        made = await self._node.put(self.session, data)
        self._registration.broker_epoch = made.created
        if not self._registered:
            self._registration.first_epoch = made.created
        self._registered = True
        await self._controller.begin()

    def start(self) -> None:
        """Starts the background work: elections, new sessions, metadata deltas."""
        self._background.keep(self._run)
        self.fetcher.start()

    async def seen(self) -> None:
        """Returns when the controller knows this broker and may assign partitions to it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SEEN_WITHIN_MS / 1000
        while self._config.id not in self._view.image.brokers and loop.time() < until:
            await asyncio.sleep(SHORT_MS / 1000)

    async def leave(self) -> None:
        """Waits until the controller has moved this broker's leaderships, with a time limit."""
        if self._is_ousted:
            return  # the leaderships of this id are the other process's
        config, loop = self._config, asyncio.get_running_loop()
        tries = 1 + config.controlled_shutdown_max_retries
        until = loop.time() + tries * config.controlled_shutdown_retry_backoff_ms / 1000
        seen_s = loop.time()
        asking: asyncio.Future[bool] | None = None
        try:
            while loop.time() < until:
                if asking is None:
                    asking = asyncio.ensure_future(self._may_leave())
                await asyncio.wait({asking}, timeout=RETRY_MS / 1000)
                if not asking.done():
                    # Without ZooKeeper a controller does not answer before its session ends.
                    may_answer = self._is_connected
                elif asking.result():
                    return
                else:
                    asking = None
                    may_answer = self._is_connected and (
                        self._controller.active or self.fetcher.is_answered
                    )
                    await asyncio.sleep(SHORT_MS / 1000)
                if may_answer:
                    seen_s = loop.time()
                elif loop.time() > seen_s + NO_CONTROLLER_MS / 1000:
                    logger.warning("no controller answers: leaving without handing leadership over")
                    return
        finally:
            if asking is not None:
                asking.cancel()
        logger.warning("some partitions have no other broker to lead them: leaving anyway")

    @property
    def _is_connected(self) -> bool:
        return self._session is not None and self._session.is_connected

    async def _may_leave(self) -> bool:
        if self._controller.active:
            me = self._registration
            try:
                return await self._controller.shut_down(me.broker_id, me.broker_epoch)
            except ApiError:
                return False
        return await self.fetcher.ask_to_leave()

    async def close(self) -> None:
        """Leaves the cluster; the other brokers notice at once."""
        await self._background.close()
        await self.fetcher.close()
        await self._controller.close(wait=self._is_connected)
        session, self._session = self._session, None
        if session is None:
            return
        try:
            async with asyncio.timeout(LEAVE_WITHIN_MS / 1000):
                await session.close()
        except (CoordinationError, TimeoutError) as error:
            logger.warning("cannot close the session with the ensemble: %r", error)

    def abandon_session(self) -> None:
        """For any thread: the event loop is held, and others must lead. The broker opens a new
        session as soon as the loop goes on.
        """
        session = self._session
        if session is not None:
            session.abandon()

    def check(self, event: Event | None = None) -> None:
        """Something may have changed (a watch, a resignation): `_run` checks the tree."""
        self._check_due.set()
        if event is not None and event.change is Change.DATA and self._session is not None:
            # At once: `_run` may be busy.
            self._background.spawn(self._answer(self._session, event.path))

    async def _answer(self, session: Coordination, path: str) -> None:
        """Answers if somebody asks whether this process is alive; see `deposing`."""
        try:
            await answer(session, path)
        except CoordinationError as error:
            logger.info("cannot answer at %s: %r", path, error)

    async def _run(self) -> None:
        while True:
            self._check_due.clear()
            try:
                await self._check_cluster()
                if self._registered:
                    await self._keep_registered()
                await self._run_for_controller()
            except SessionExpiredError:
                self._controller.resign("the session is over")
                await self._new_session()
                continue
            except CoordinationError as error:
                # No connection, or another broker was faster. That deposes nobody: check again.
                logger.info("the coordination tree: %r", error)
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            except IdTakenError as error:
                return await self._oust(str(error))
            except (LayoutError, StoreError) as error:
                # Until it is repaired the cluster may have no controller; everything else runs.
                logger.error("%s: %s", UNUSABLE, error)
                await asyncio.sleep(UNUSABLE_RETRY_MS / 1000)
                continue
            await self._check_due.wait()

    async def _check_cluster(self) -> None:
        """Raises LayoutError if the ensemble was wiped while this broker runs: with an
        empty tree it would set aside all its data.
        """
        there = await self.session.exists(layout.CLUSTER_ID)
        found = None if there is None else layout.read_cluster_id(there.data)
        own = self._view.image.cluster_id
        if found != own:
            raise LayoutError(
                f"{layout.CLUSTER_ID}: {found or 'missing'}; this broker belongs to cluster {own}"
            )

    async def _keep_registered(self) -> None:
        """Registers this broker again if its node is gone. If the response to a creation was lost,
        the node exists, and this broker must use its epoch from now on.

        Raises IdTakenError, CoordinationError.
        """
        there = await self._node.find(self.session, self.check)
        if there is not None:
            if is_challenged(there):
                await answer(self.session, self._node.path)
            self._registration.broker_epoch = there.created
            return
        logger.warning("this broker's registration is gone: registering again")
        await self._register()

    async def _notified(self, delta: MetadataDelta) -> None:
        """The controller may know a later process with this broker's id while the ensemble is out
        of reach here. Its next words on this id are for that process.
        """
        first_epoch = self._registration.first_epoch
        if not isinstance(delta, BrokerAppeared) or first_epoch < 0:
            return
        broker = delta.broker
        if (
            broker.broker_id == self._config.id
            and broker.epoch > first_epoch
            and not broker.is_same_incarnation(first_epoch)
        ):
            await self._oust(str(taken(broker, self._folder)))

    async def _oust(self, why: str) -> None:
        if self._is_ousted:
            return
        self._is_ousted = True
        self._controller.resign("another process has this broker's id")
        await self._on_ousted(f"{why}; this broker stops")

    async def _new_session(self) -> None:
        """Retries until the ensemble is back."""
        while True:
            try:
                return await self._open_session()
            except CoordinationError as error:
                logger.warning("cannot open a new session: %s", error)
                await asyncio.sleep(RETRY_MS / 1000)

    async def _open_session(self) -> None:
        self._session = await self._tree.connect()
        self._returned_at = asyncio.get_running_loop().time()

    async def _run_for_controller(self) -> None:
        """Runs for controller, or follows the elected one. Raises CoordinationError."""
        session, controller = self.session, self._controller
        tenure: Tenure | None = None
        there = await session.exists(layout.CONTROLLER, watch=self.check)
        if there is None:
            controller.resign("/controller is gone")
            tenure = await self._stand(session)
            there = await session.exists(layout.CONTROLLER, watch=self.check)
            if there is None:
                self.check()
                return
        if there.owner == session.number:
            if is_challenged(there):
                await answer(session, layout.CONTROLLER)
            self.fetcher.follow(self._config.id)
            if not controller.active:
                await controller.lead(
                    session,
                    tenure=tenure,
                    overtaken=self.check,
                    others_return_until=self._others_return_until,
                )
                if self._registered:
                    await controller.begin()
            return
        controller.resign("another broker is the controller")
        self.fetcher.follow(layout.read_controller(there.data))

    async def _stand(self, session: Coordination) -> Tenure | None:
        """Creates /controller and takes the next epoch in one step, as Kafka does
        (KafkaZkClient.registerControllerAndIncrementControllerEpoch). None if another broker was
        faster.
        """
        before = await session.get(layout.CONTROLLER_EPOCH)
        epoch = int(before.data) + 1
        content = layout.write_controller(self._config.id, self._clock.now_ms())
        try:
            await session.multi(
                [
                    Create(layout.CONTROLLER, content, ephemeral=True),
                    SetData(layout.CONTROLLER_EPOCH, str(epoch).encode(), before.version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            return None
        return Tenure(epoch, before.version + 1)

    @property
    def _others_return_until(self) -> float | None:
        """How long a controller waits for brokers whose sessions ended with this broker's own."""
        if self._returned_at is None:
            return None
        within_ms = self._config.zookeeper_session_timeout_ms / 3 + RECONNECTS_WITHIN_MS
        return self._returned_at + within_ms / 1000

    async def _learn_addresses(self) -> None:
        """Reads the other brokers' addresses from the tree: before the first image, and if this
        broker does not know the controller because it was the first one itself."""
        for name in await self.session.children(layout.BROKER_IDS):
            found = await self.session.exists(layout.broker_path(int(name)))
            if found is not None and layout.is_ottla(found.data):
                broker = layout.read_broker(int(name), found.data, found.created)
                await self._view.apply([BrokerAppeared(broker)])

    async def _controller_out_of_reach(self, broker_id: int, refused: bool) -> None:
        """The controller refuses connections: deletes its /controller before its session ends,
        unless it answers in the tree. If it is alive nevertheless, the next controller's epoch
        fences it."""
        address = self._peers.address(broker_id)
        try:
            if not refused or address is None:
                return await self._learn_addresses()
            there = await self.session.exists(layout.CONTROLLER)
            if there is not None and layout.read_controller(there.data) == broker_id:
                await self._depose(broker_id, there.created, address)
        except CoordinationError as error:
            logger.info("cannot check /controller: %r", error)

    async def _depose(self, broker_id: int, created: int, address: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._spared.get(created, 0.0):
            return

        async def is_refused() -> bool:
            return await probe(*address) is Probe.REFUSED

        deposed = await depose_controller(self.session, broker_id, created, is_refused)
        if deposed is Deposed.DELETED:
            logger.warning("broker %d, the controller, is gone", broker_id)
        elif deposed is Deposed.ALIVE:
            self._spared = {created: loop.time() + SPARED_MS / 1000}
            logger.warning(
                "broker %d, the controller, refuses connections here at %s:%d, and is alive: is"
                " there a firewall?",
                broker_id,
                *address,
            )
