"""The controller's eye on the brokers: their registrations, and their connections as a hint.

A broker is alive while its ephemeral node is there. That lasts a session timeout longer than the
process; but a killed process closes its connections at once. So when a broker's fetch of deltas
breaks off, its listener is probed: where the machine refuses the connection nobody is there, and
the node is deleted, which then is a vanished broker like any other. Where nothing answers (a cut
network, a stopped process) only the session decides. Should a broker be deleted that lives, the
leader epochs keep it from doing harm, and it registers again.

Where the ensemble could not be reached by anybody, all sessions end together, and whoever is back
first is the controller. It waits for the others that listen as ever, for nobody took over what they
lead: were others elected at once, one broker would lead all. Until then they stay in the image, or
clients would hear that there is one broker, and drop what they asked the others. New replicas wait
(`current`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.background import Background
from ottla.controller import layout
from ottla.controller.image import BrokerImage
from ottla.controller.leadership import Election
from ottla.controller.returned_brokers import ReturnedBrokers
from ottla.coordination.tree import CoordinationError, Event, NoNodeError
from ottla.network.peer import Probe, probe
from ottla.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.controller")

PROBE_AGAIN_AFTER_MS: Final = (20, 50, 100, 200, 400)
RETRY_MS: Final = 200
RETURN_CHECK_MS: Final = 500
RECONNECTS_WITHIN_MS: Final = 2_000


def others_return_until(node: Node) -> float | None:
    """Until when, by the loop's clock, a controller waits for those whose sessions ended with
    its own; None where its own did not end, or that is long ago.
    """
    returned_at = node.membership.returned_at
    if returned_at is None:
        return None
    within_ms = node.config.zookeeper_session_timeout_ms / 3 + RECONNECTS_WITHIN_MS
    until = returned_at + within_ms / 1000
    return until if asyncio.get_running_loop().time() < until else None


class BrokerWatch:
    """One controller's term."""

    def __init__(self, node: Node, former: Mapping[int, BrokerImage]) -> None:
        """`former` are the brokers that were registered when this one last heard of them."""
        self._node = node
        self._former = former
        self._session = node.membership.session
        self._changed = asyncio.Event()
        self._over = False
        self._begun = asyncio.Event()
        self._looking = asyncio.Lock()
        """One look after another, or an older one could be taken in after a newer one."""
        self._background = Background(logger, "the watch over the brokers")

    async def start(self) -> None:
        """Takes in the brokers as they are now, and from now on; probes all of them once.

        Returns at once where it has to wait for the others.
        """
        until = others_return_until(self._node)
        if until is None:
            await self._begin()
        else:
            self._background.keep(partial(self._begin_with_the_others, until))

    async def _begin_with_the_others(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until and await self._others_are_coming():
            await asyncio.sleep(RETRY_MS / 1000)
        await self._begin()

    async def _others_are_coming(self) -> bool:
        """Whether one that was registered, and is not yet again, listens."""
        try:
            names = await self._session.children(layout.BROKER_IDS)
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return True
        listener = self._node.config.inter_broker_listener
        missing = self._former.keys() - set(map(int, names))
        places = [self._former[each].inter_broker_endpoint(listener) for each in missing]
        found = await asyncio.gather(*(probe(place.host, place.port) for place in places if place))
        return Probe.ALIVE in found

    async def current(self) -> None:
        """Returns when the image has the brokers that are registered now: what needs them all would
        be refused for one of which the watch has not told yet. What goes wrong here is left to the
        plan that follows, or to the next look.
        """
        await self._begun.wait()
        if self._over:
            return
        try:
            names = await self._session.children(layout.BROKER_IDS)
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return
        if set(map(int, names)) != self._node.image.brokers.keys():
            await self._take_in()

    async def _begin(self) -> None:
        again = await self._take_in()
        self._begun.set()
        if again is None:
            return
        self._background.keep(partial(self._follow, again))
        self._background.keep(self._rebalance)
        self._background.keep(self._give_back)
        for broker_id in self._node.image.brokers:
            self.hung_up(broker_id)

    def close(self) -> None:
        self._over = True
        self._begun.set()
        self._background.cancel()

    def hung_up(self, broker_id: int) -> None:
        """A broker's connection to the controller broke off."""
        if broker_id != self._node.config.id:
            self._background.spawn(self._look_closer(broker_id))

    async def _follow(self, at_once: bool) -> None:
        again: bool | None = at_once
        while again is not None:
            if again:
                await asyncio.sleep(RETRY_MS / 1000)
            else:
                await self._changed.wait()
            again = await self._take_in()

    async def _rebalance(self) -> None:
        config = self._node.config
        while True:
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable:
                await self._rebalance_once(None)

    async def _give_back(self) -> None:
        """Brokers that have come back lead again soon; see `ottla.controller.returned_brokers`."""
        config, clock = self._node.config, self._node.clock
        interval_ms = round(config.leader_imbalance_check_interval_seconds * 1000)
        returned = ReturnedBrokers(interval_ms)
        while True:
            due = returned.due(self._node.image, clock.monotonic_ms())
            if due and config.auto_leader_rebalance_enable:
                elections = await self._rebalance_once(due)
                leaders = {election.leader for election in elections}
                returned.gave_back(leaders, clock.monotonic_ms())
            await asyncio.sleep(RETURN_CHECK_MS / 1000)

    async def _rebalance_once(self, only: Collection[int] | None) -> tuple[Election, ...]:
        try:
            return await self._node.controller.rebalance(only)
        except ApiError as error:
            logger.info("no rebalance of leaders: %s", error)
            return ()

    async def _take_in(self) -> bool | None:
        """One look: whether it must be tried again; None where the term is over."""
        try:
            async with self._looking:
                self._changed.clear()
                await self._node.controller.brokers_are(await self._live())
        except CoordinationError as error:
            logger.info("cannot read the brokers: %r", error)
            return True
        except ApiError as error:
            logger.info("brokers changed, but %s", error)
            # A disk that refuses a write is no reason to look after nobody any more.
            return None if error.code is ErrorCode.not_controller else True
        return False

    async def _live(self) -> dict[int, BrokerImage]:
        names = await self._session.children(layout.BROKER_IDS, watch=self._fired)
        paths = [layout.broker_path(int(name)) for name in names]
        found = await asyncio.gather(*map(self._session.exists, paths))
        return {
            int(name): layout.read_broker(int(name), node.data, node.created)
            for name, node in zip(names, found, strict=True)
            if node is not None
        }

    def _fired(self, _: Event) -> None:
        self._changed.set()

    async def _is_refused(self, host: str, port: int) -> bool:
        """A process that dies closes its sockets one by one: its listener may outlast the
        connection whose end brought us here, so a listener that is there is looked at again."""
        for wait_ms in PROBE_AGAIN_AFTER_MS:
            if await probe(host, port) is Probe.REFUSED:
                return True
            await asyncio.sleep(wait_ms / 1000)
        return await probe(host, port) is Probe.REFUSED

    async def _look_closer(self, broker_id: int) -> None:
        broker = self._node.image.brokers.get(broker_id)
        address = self._node.peers.address(broker_id)
        if broker is None or address is None:
            return
        if not await self._is_refused(*address):
            return
        path = layout.broker_path(broker_id)
        try:
            there = await self._session.exists(path)
            if there is not None and there.created == broker.epoch:
                logger.warning("broker %d is gone: nobody listens at %s:%d", broker_id, *address)
                await self._session.delete(path, there.version)
        except NoNodeError:
            return
        except CoordinationError as error:
            logger.info("cannot delete %s: %r", path, error)
