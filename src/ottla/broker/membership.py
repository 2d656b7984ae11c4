"""This broker in its cluster: a session with the coordination tree, the registration, elections.

    /brokers/ids/N   ephemeral; made again whenever it is gone while this broker runs
    /controller      ephemeral; whoever makes it is the controller, all others watch it

A session that is over is followed by a new one, with a new registration; what the old one owned is
gone by then. Nothing here stops produce and fetch: while the ensemble is away, the broker goes on
with the image that it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ottla.broker.background import Background
from ottla.broker.controller import StartError
from ottla.broker.metadata_fetcher import MetadataFetcher
from ottla.controller import layout
from ottla.controller.image import NO_LEADER, BrokerAppeared, BrokerImage
from ottla.controller.layout import LayoutError
from ottla.controller.loading import first_writes
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import (
    ConnectionLostError,
    Coordination,
    CoordinationError,
    Create,
    Event,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from ottla.protocol.errors import ApiError
from ottla.protocol.kafka_uuid import random_uuid, uuid_text

if TYPE_CHECKING:
    from ottla.broker.node import Node

T = TypeVar("T")

logger = logging.getLogger("ottla.membership")

RETRY_MS: Final = 200
UNUSABLE_RETRY_MS: Final = 2_000
SHORT_MS: Final = 20
NO_CONTROLLER_MS: Final = 3_000
SEEN_WITHIN_MS: Final = 10_000
FIRST_IMAGE_WITHIN_MS: Final = 60_000
LEAVE_WITHIN_MS: Final = 5_000
EXPIRY_SLACK_MS: Final = 2_000
"""A session ends up to a tick of the ensemble (tickTime, 2 s) later than its timeout says."""


class Tree(Protocol):
    """Where sessions come from: `EmbeddedTree` or `ZooKeeperTree`."""

    async def connect(self) -> Coordination:
        """A new session."""


class Membership:
    """See the module's text."""

    def __init__(self, node: Node, tree: Tree, *, random: Random) -> None:
        self._random = random
        self.broker_epoch = -1
        self.first_epoch = -1
        """The broker epoch of this process's first registration."""
        self.fetcher = MetadataFetcher(node, self._controller_out_of_reach)
        self._node = node
        self._tree = tree
        self.returned_at: float | None = None
        """When a session followed one that had expired, on the loop's clock."""
        self._session: Coordination | None = None
        self._registered = False
        self._something = asyncio.Event()
        self._background = Background(logger, "this broker's part in the cluster")

    @property
    def session(self) -> Coordination:
        assert self._session is not None
        return self._session

    async def connect(self, known_cluster_id: str | None, *, may_found: bool = True) -> str:
        """The first session. The cluster's id: the tree's, or else the folder's, or a new one.

        Not `may_found`: the folder is of a cluster that there must be, for by a tree without topics
        all that the folder holds would be deleted. Raises EnsembleError, StoreError,
        CoordinationError; StartError where that cluster is not in the tree.
        """
        self._session = await self._tree.connect()
        found = await self._through_losses(lambda: self._found(known_cluster_id, may_found))
        self._node.view.image.cluster_id = found
        return found

    async def _found(self, known_cluster_id: str | None, may_found: bool) -> str:
        session = self.session
        present = {}
        for path in (*layout.LASTING_NODES, layout.CLUSTER_ID, layout.CONTROLLER_EPOCH):
            node = await session.exists(path)
            if node is not None:
                present[path] = node
        if not may_found and layout.CLUSTER_ID not in present:
            # As Kafka's InconsistentClusterIdException.
            raise StartError(
                f"the data folder belongs to cluster {known_cluster_id}, and there is no cluster"
                f" {self._node.config.zookeeper_connect or 'in its coordination store'}: is"
                " --zookeeper (zookeeper.connect, with its chroot) right?"
            )
        for write in first_writes(
            present, known_cluster_id or uuid_text(random_uuid(self._random))
        ):
            assert isinstance(write, Create)
            try:
                await session.create(write.path, write.data)
            except NodeExistsError:
                continue  # another broker begins at the same moment
        return layout.read_cluster_id((await session.get(layout.CLUSTER_ID)).data)

    async def first_image(self) -> None:
        """Returns when the view has an image: loaded as the controller, or told by it.

        Raises StartError where no controller answers for long; as the controller, ConfigError where
        a dynamic setting does not fit the static ones.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + FIRST_IMAGE_WITHIN_MS / 1000
        while loop.time() < until:
            await self._through_losses(self._take_part)
            if self._node.controller.active:
                self._node.view.reconfigure()
                return
            if self.fetcher.controller_id != NO_LEADER:
                await self._through_losses(self._learn_addresses)
                if await self.fetcher.ask_once(0):
                    return
            await asyncio.sleep(RETRY_MS / 1000)
        raise StartError(
            f"broker {self.fetcher.controller_id}, the controller, gives no answer: look at its log"
        )

    async def register(self) -> None:
        """Makes this broker known. Raises StartError where another one has its number."""
        await self._through_losses(self._register)

    async def _through_losses(self, work: Callable[[], Awaitable[T]]) -> T:
        """For the start: does the work, and all of it again where the connection is lost meanwhile
        or the session over. An ensemble that elects its own leader, or is held up on a busy
        machine, is back in a moment (Kafka's `retryRequestUntilConnected`).

        Raises ConnectionLostError, SessionExpiredError or EnsembleError where it is not back in the
        time that a first connection has.
        """
        config, loop = self._node.config, asyncio.get_running_loop()
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
                    self._node.controller.resign("the session is over")
                    await self._another_session()

    async def _register(self) -> None:
        node, session, path = self._node, self.session, layout.broker_path(self._node.config.id)
        directory_id = node.store.metadata.directory_id
        me = BrokerImage(
            node.config.id,
            node.endpoints,
            node.config.broker_rack,
            directory_id=directory_id,
            first_epoch=self.first_epoch,
        )
        loop = asyncio.get_running_loop()
        wait_ms = node.config.zookeeper_session_timeout_ms + EXPIRY_SLACK_MS
        until = loop.time() + wait_ms / 1000
        is_said = False
        while True:
            try:
                made = await session.create(
                    path, layout.write_broker(me, node.clock.now_ms()), ephemeral=True
                )
                break
            except NodeExistsError:
                there = await session.exists(path)
            if there is None:
                continue
            other = layout.read_broker(node.config.id, there.data)
            if other.directory_id == directory_id:
                # Our own former self: this folder's lock is ours, so that process is gone.
                await self._delete(path, there.version)
                continue
            if loop.time() > until:
                raise StartError(
                    f"node.id={node.config.id}: a broker with this number runs: "
                    "stop it, or give this one another number (--id)"
                )
            if not is_said:
                is_said = True
                place = next((f"{each.host}:{each.port}" for each in other.endpoints), "no address")
                logger.warning(
                    "node.id=%d is taken by a broker at %s: waiting up to %d s for its session"
                    " to end, in case it is dead",
                    node.config.id, place, wait_ms // 1000,
                )  # fmt: skip
            await asyncio.sleep(RETRY_MS / 1000)
        self.broker_epoch = made.created
        if not self._registered:
            self.first_epoch = made.created
        self._registered = True
        await node.controller.begin()

    def start(self) -> None:
        """From now on: elections, new sessions, metadata deltas."""
        self._background.keep(self._live)
        self.fetcher.start()

    async def seen(self) -> None:
        """Returns when the controller knows this broker: it may be given partitions then."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SEEN_WITHIN_MS / 1000
        while self._node.config.id not in self._node.image.brokers and loop.time() < until:
            await asyncio.sleep(SHORT_MS / 1000)

    async def leave(self) -> None:
        """Waits until the controller has moved this broker's leaderships, within limits."""
        config, loop = self._node.config, asyncio.get_running_loop()
        tries = 1 + config.controlled_shutdown_max_retries
        until = loop.time() + tries * config.controlled_shutdown_retry_backoff_ms / 1000
        heard = loop.time()
        asking: asyncio.Future[bool] | None = None
        try:
            while loop.time() < until:
                if asking is None:
                    asking = asyncio.ensure_future(self._may_leave())
                await asyncio.wait({asking}, timeout=RETRY_MS / 1000)
                if not asking.done():
                    # Without ZooKeeper a controller does not answer before its session is over.
                    may_answer = self._is_connected
                elif asking.result():
                    return
                else:
                    asking = None
                    may_answer = self._is_connected and (
                        self._node.controller.active or self.fetcher.is_answered
                    )
                    await asyncio.sleep(SHORT_MS / 1000)
                if may_answer:
                    heard = loop.time()
                elif loop.time() > heard + NO_CONTROLLER_MS / 1000:
                    logger.warning("no controller answers: leaving without handing leadership over")
                    return
        finally:
            if asking is not None:
                asking.cancel()
        logger.warning("some partitions have no other broker to lead them: leaving all the same")

    @property
    def _is_connected(self) -> bool:
        return self._session is not None and self._session.is_connected

    async def _may_leave(self) -> bool:
        node = self._node
        if node.controller.active:
            try:
                return await node.controller.shut_down(node.config.id, self.broker_epoch)
            except ApiError:
                return False
        return await self.fetcher.ask_to_leave()

    async def close(self) -> None:
        """Leaves the cluster; others see it at once."""
        await self._background.close()
        await self.fetcher.close()
        await self._node.controller.close(wait=self._is_connected)
        session, self._session = self._session, None
        if session is None:
            return
        try:
            async with asyncio.timeout(LEAVE_WITHIN_MS / 1000):
                await session.close()
        except (CoordinationError, TimeoutError) as error:
            logger.warning("the ensemble did not hear that this broker leaves: %r", error)

    def look(self, _: Event | None = None) -> None:
        """Something may have changed (a watch, a resignation): `_live` looks again."""
        self._something.set()

    async def _live(self) -> None:
        while True:
            self._something.clear()
            try:
                await self._check_cluster()
                if self._registered and not await self._own_node_is_there():
                    logger.warning("this broker's registration is gone: registering again")
                    await self._register()
                await self._take_part()
            except SessionExpiredError:
                self._node.controller.resign("the session is over")
                await self._new_session()
                continue
            except CoordinationError as error:
                # No connection, or somebody was faster. Nobody is deposed by that: look again.
                logger.info("the coordination tree: %r", error)
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            except StartError as error:
                logger.error("%s", error)
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            except (LayoutError, StoreError) as error:
                # Until somebody puts it right the cluster may have no controller; the rest goes on.
                logger.error("the cluster's state cannot be used: %s", error)
                await asyncio.sleep(UNUSABLE_RETRY_MS / 1000)
                continue
            await self._something.wait()

    async def _check_cluster(self) -> None:
        """Raises LayoutError where the ensemble was wiped while this broker runs: by what is there
        then, this broker would have to delete all it holds.
        """
        there = await self.session.exists(layout.CLUSTER_ID)
        found = None if there is None else layout.read_cluster_id(there.data)
        own = self._node.image.cluster_id
        if found != own:
            raise LayoutError(
                f"{layout.CLUSTER_ID}: {found or 'missing'}; this broker belongs to cluster {own}"
            )

    async def _own_node_is_there(self) -> bool:
        """One of this session may be there though its making was never answered: the connection
        was lost. What this broker says of itself from now on must bear that one's epoch. Another
        broker may have taken the number while this one was away: then it is waited for and said.
        """
        number = self._node.config.id
        path = layout.broker_path(number)
        there = await self.session.exists(path, watch=self.look)
        if there is None:
            return False
        if there.owner == self.session.number:
            self.broker_epoch = there.created
            return True
        directory_id = layout.read_broker(number, there.data).directory_id
        return directory_id == self._node.store.metadata.directory_id

    async def _new_session(self) -> None:
        """Tries until the ensemble is there again."""
        while True:
            try:
                return await self._another_session()
            except CoordinationError as error:
                logger.warning("no new session yet: %s", error)
                await asyncio.sleep(RETRY_MS / 1000)

    async def _another_session(self) -> None:
        self._session = await self._tree.connect()
        self.returned_at = asyncio.get_running_loop().time()

    async def _take_part(self) -> None:
        """Stands for election, or notes who won. Raises CoordinationError."""
        session, controller = self.session, self._node.controller
        there = await session.exists(layout.CONTROLLER, watch=self.look)
        if there is None:
            controller.resign("/controller is gone")
            content = layout.write_controller(self._node.config.id, self._node.clock.now_ms())
            try:
                await session.create(layout.CONTROLLER, content, ephemeral=True)
            except NodeExistsError:
                self.look()
                return
            there = await session.get(layout.CONTROLLER, watch=self.look)
        if there.owner == session.number:
            self.fetcher.follow(self._node.config.id)
            if not controller.active:
                await controller.lead(session)
                if self._registered:
                    await controller.begin()
            return
        controller.resign("another broker is the controller")
        self.fetcher.follow(layout.read_controller(there.data))

    async def _learn_addresses(self) -> None:
        """Where the others are, from the tree itself: before the first image, and where this broker
        does not know the controller, for it was the first one itself."""
        for name in await self.session.children(layout.BROKER_IDS):
            found = await self.session.exists(layout.broker_path(int(name)))
            if found is not None:
                broker = layout.read_broker(int(name), found.data, found.created)
                await self._node.view.tell([BrokerAppeared(broker)])

    async def _controller_out_of_reach(self, broker_id: int, refused: bool) -> None:
        """Nobody listens where the controller did: its /controller goes, before its session ends.
        Safe, because the next controller's epoch fences it should it live."""
        try:
            if not refused:
                return await self._learn_addresses()
            there = await self.session.exists(layout.CONTROLLER)
            if there is not None and layout.read_controller(there.data) == broker_id:
                logger.warning("broker %d, the controller, is gone", broker_id)
                await self._delete(layout.CONTROLLER, there.version)
        except CoordinationError as error:
            logger.info("cannot look at /controller: %r", error)

    async def _delete(self, path: str, version: int) -> None:
        with suppress(NoNodeError):  # somebody else was faster
            await self.session.delete(path, version)
