"""The controller's watch on the brokers: their registrations, and their connections as a hint.

A broker is alive while its ephemeral node exists. The node outlives the process by up to a session
timeout, but a killed process closes its connections at once. So when a broker's fetch of deltas
breaks off, the controller probes its listener. If the machine refuses the connection, and the
process does not answer in the tree (`deposing`), it is gone: the controller deletes the node, and
the broker is handled like any other that vanished. If nothing answers (a cut network, a stopped
process), only the session decides. If the node of a live broker is deleted, leader epochs keep that
broker from doing harm, and it registers again.

If no broker could reach the ensemble, all sessions end together, and the broker that is back first
becomes the controller. It waits for the other brokers that still listen, because nobody has taken
over their partitions: if it elected other leaders at once, one broker would lead all. Until then
they stay in the image; otherwise clients would see a cluster of one broker and drop their requests
to the others. New replicas are placed after that (`current`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, Protocol

from ottla.cluster.deposing import Deposed, depose_broker
from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import BrokerImage, ClusterImage
from ottla.controller.leadership import Election
from ottla.controller.returned_brokers import ReturnedBrokers
from ottla.coordination.tree import Coordination, CoordinationError, Event
from ottla.network.peer import Probe, probe
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock

logger = logging.getLogger("ottla.controller")

PROBE_AGAIN_AFTER_MS: Final = (20, 50, 100, 200, 400)
RETRY_MS: Final = 200
RETURN_CHECK_MS: Final = 500


class Decisions(Protocol):
    """The controller's decisions about brokers."""

    async def brokers_are(self, live: Mapping[int, BrokerImage]) -> None:
        """Applies that exactly these brokers are registered. Raises ApiError."""

    async def rebalance(self, only: Collection[int] | None = None) -> tuple[Election, ...]:
        """Elects the preferred leaders. Raises ApiError."""


class BrokerWatch:
    """For one controller tenure."""

    def __init__(
        self,
        decisions: Decisions,
        session: Coordination,
        config: BrokerConfig,
        image: ClusterImage,
        clock: Clock,
        peers: Peers,
        former: Mapping[int, BrokerImage],
    ) -> None:
        """`former`: the registered brokers, as far as this one knew before it became controller."""
        self._decisions = decisions
        self._session = session
        self._config = config
        self._image = image
        self._clock = clock
        self._peers = peers
        self._former = former
        self._foreign: set[int] = set()
        """Registrations of Apache Kafka, as logged."""
        self._changed = asyncio.Event()
        self._over = False
        self._begun = asyncio.Event()
        self._checking = asyncio.Lock()
        """One check at a time; otherwise an older result could be applied after a newer one."""
        self._background = Background(logger, "the broker watch")

    async def start(self, wait_until: float | None) -> None:
        """Begins to follow the brokers, and probes each once.

        `wait_until`: how long, on the loop's clock, to wait for brokers whose sessions ended
        together with this broker's own. The wait runs in the background.
        """
        if wait_until is None:
            await self._begin()
        else:
            self._background.keep(partial(self._begin_after_others, wait_until))

    async def _begin_after_others(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until and await self._others_are_returning():
            await asyncio.sleep(RETRY_MS / 1000)
        await self._begin()

    async def _others_are_returning(self) -> bool:
        """Whether a broker that was registered, and is not yet registered again, listens."""
        try:
            names = await self._session.children(layout.BROKER_IDS)
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return True
        listener = self._config.inter_broker_listener
        missing = self._former.keys() - set(map(int, names))
        endpoints = [self._former[each].inter_broker_endpoint(listener) for each in missing]
        found = await asyncio.gather(
            *(probe(endpoint.host, endpoint.port) for endpoint in endpoints if endpoint)
        )
        return Probe.ALIVE in found

    async def current(self) -> None:
        """Returns when the image has all brokers that are registered now, including those whose
        watch event has not arrived yet. Errors are left to the following plan or the next check.
        """
        await self._begun.wait()
        if self._over:
            return
        try:
            names = await self._session.children(layout.BROKER_IDS)
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return
        if set(map(int, names)) != self._image.brokers.keys():
            await self._check_brokers()

    async def _begin(self) -> None:
        again = await self._check_brokers()
        self._begun.set()
        if again is None:
            return
        self._background.keep(partial(self._follow, again))
        self._background.keep(self._rebalance)
        self._background.keep(self._rebalance_returned)
        for broker_id in self._image.brokers:
            self.disconnected(broker_id)

    def close(self) -> None:
        self._over = True
        self._begun.set()
        self._background.cancel()

    def disconnected(self, broker_id: int) -> None:
        """A broker's connection to the controller was lost."""
        if broker_id != self._config.id:
            self._background.spawn(self._delete_if_refused(broker_id))

    async def _follow(self, at_once: bool) -> None:
        again: bool | None = at_once
        while again is not None:
            if again:
                await asyncio.sleep(RETRY_MS / 1000)
            else:
                await self._changed.wait()
            again = await self._check_brokers()

    async def _rebalance(self) -> None:
        config = self._config
        while True:
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable:
                await self._rebalance_once(None)

    async def _rebalance_returned(self) -> None:
        """Elects returned brokers as leaders soon; see `ottla.controller.returned_brokers`."""
        config, clock = self._config, self._clock
        interval_ms = round(config.leader_imbalance_check_interval_seconds * 1000)
        returned = ReturnedBrokers(interval_ms)
        while True:
            due = returned.due(self._image, clock.monotonic_ms())
            if due and config.auto_leader_rebalance_enable:
                elections = await self._rebalance_once(due)
                leaders = {election.leader for election in elections}
                returned.gave_back(leaders, clock.monotonic_ms())
            await asyncio.sleep(RETURN_CHECK_MS / 1000)

    async def _rebalance_once(self, only: Collection[int] | None) -> tuple[Election, ...]:
        try:
            return await self._decisions.rebalance(only)
        except ApiError as error:
            logger.info("cannot rebalance leaders: %s", error)
            return ()

    async def _check_brokers(self) -> bool | None:
        """Whether the check must be repeated; None if this controller's tenure is over."""
        try:
            async with self._checking:
                self._changed.clear()
                await self._decisions.brokers_are(await self._registered())
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return True
        except ApiError as error:
            logger.info("cannot apply the change of brokers: %s", error)
            # A disk that refuses a write must not end the watch.
            return None if error.code is ErrorCode.not_controller else True
        return False

    async def _registered(self) -> dict[int, BrokerImage]:
        names = await self._session.children(layout.BROKER_IDS, watch=self._fired)
        paths = [layout.broker_path(int(name)) for name in names]
        found = await asyncio.gather(*map(self._session.exists, paths))
        live: dict[int, BrokerImage] = {}
        for name, node in zip(names, found, strict=True):
            if node is None:
                continue
            if layout.is_ottla(node.data):
                live[int(name)] = layout.read_broker(int(name), node.data, node.created)
            elif node.created not in self._foreign:
                self._foreign.add(node.created)
                logger.error(
                    "broker %s is Apache Kafka, which an Ottla cluster cannot have: stop it", name
                )
        return live

    def _fired(self, _: Event) -> None:
        self._changed.set()

    async def _is_refused(self, host: str, port: int) -> bool:
        """Probes several times: a dying process closes its sockets one by one, so its listener
        may outlive the connection whose loss caused the probe."""
        for wait_ms in PROBE_AGAIN_AFTER_MS:
            if await probe(host, port) is Probe.REFUSED:
                return True
            await asyncio.sleep(wait_ms / 1000)
        return await probe(host, port) is Probe.REFUSED

    async def _delete_if_refused(self, broker_id: int) -> None:
        broker = self._image.brokers.get(broker_id)
        address = self._peers.address(broker_id)
        if broker is None or address is None:
            return
        if not await self._is_refused(*address):
            return

        async def is_refused() -> bool:
            return await probe(*address) is Probe.REFUSED

        try:
            deposed = await depose_broker(self._session, broker_id, broker.epoch, is_refused)
            if deposed is Deposed.DELETED:
                logger.warning("broker %d is gone: %s:%d refuses connections", broker_id, *address)
            elif deposed is Deposed.ALIVE:
                logger.warning(
                    "broker %d is alive, and %s:%d refused connections: is there a firewall?",
                    broker_id,
                    *address,
                )
        except CoordinationError as error:
            logger.info("cannot delete the registration of broker %d: %r", broker_id, error)
