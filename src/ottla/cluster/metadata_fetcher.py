"""Fetches metadata deltas from the controller and applies them.

One fetch is always in flight. It also shows the controller that this broker is alive. If the
controller cannot be reached, the broker retries until the coordination tree names another one.
If nothing listens at its address, or its address is unknown, `on_out_of_reach` is called.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.metadata_log import UNKNOWN_VERSION
from ottla.cluster.registration import Registration
from ottla.controller.delta_text import DeltaTextError, decode_delta, decode_snapshot
from ottla.controller.differences import differences_in_steps
from ottla.controller.image import NO_LEADER, MetadataDelta
from ottla.network.peer import PeerError, Probe, probe
from ottla.network.peers import Peers
from ottla.protocol.versions import METADATA_DELTAS
from ottla.runtime.background import Background
from ottla.runtime.slices import in_turns

logger = logging.getLogger("ottla.metadata")

WAIT_MS: Final = 2_000
ANSWER_WITHIN_MS: Final = 10_000
RETRY_MS: Final = 100
PURPOSE: Final = "metadata"


class MetadataFetcher:
    """The task that fetches metadata. `membership` calls `follow` with the current controller."""

    def __init__(
        self,
        registration: Registration,
        view: ClusterView,
        peers: Peers,
        on_out_of_reach: Callable[[int, bool], Awaitable[None]],
    ) -> None:
        """`on_out_of_reach` is called with the controller, and whether it refused the connection:
        if not, its address is unknown.
        """
        self.controller_id = NO_LEADER
        self._registration = registration
        self._view = view
        self._peers = peers
        self._on_out_of_reach = on_out_of_reach
        self._epoch = -1
        self._version = UNKNOWN_VERSION
        self._changed = asyncio.Event()
        self._background = Background(logger, "applying the controller's metadata deltas")
        self._has_begun = False
        self._fault = ""
        """The last error about invalid deltas; it is logged once."""
        self.is_answered = False
        """The last fetch got a response."""

    def follow(self, controller_id: int) -> None:
        """That broker is the controller now; NO_LEADER if there is none. It may be this broker."""
        if controller_id != self.controller_id:
            if self.controller_id not in (NO_LEADER, self._registration.broker_id):
                # Ends the pending fetch at once: the former controller may hang or be cut off.
                self._peers.drop(self.controller_id, PURPOSE)
            self.controller_id = controller_id
            self._version = UNKNOWN_VERSION
            self._changed.set()

    def start(self) -> None:
        self._background.keep(self._run)

    async def close(self) -> None:
        await self._background.close()

    async def fetch_once(self, wait_ms: int) -> bool:
        """Fetches once and applies the response; False if nothing was applied."""
        controller_id = self.controller_id
        request = self._request(wait_ms)
        try:
            peer = self._peers.peer(controller_id, PURPOSE)
            self.is_answered = False
            answer = await peer.ask_json(METADATA_DELTAS, request, ANSWER_WITHIN_MS)
        except PeerError as error:
            logger.info(
                "cannot fetch metadata from the controller, broker %d: %s", controller_id, error
            )
            if controller_id == self.controller_id:
                await self._probe_controller(controller_id)
            return False
        if "error" in answer or controller_id != self.controller_id:
            return False
        self.is_answered = True
        try:
            return await self._apply(controller_id, answer)
        except DeltaTextError as error:
            self._version = UNKNOWN_VERSION
            if str(error) != self._fault:
                self._fault = str(error)
                logger.error("invalid metadata deltas from broker %d: %s", controller_id, error)
            return False

    async def ask_to_leave(self) -> bool:
        """Asks the controller to move this broker's leaderships; True if this broker may stop.

        Uses its own connection: the fetch of deltas may be waiting.
        """
        try:
            peer = self._peers.peer(self.controller_id, "leaving")
            request = self._request(0) | {"want_shut_down": True}
            answer = await peer.ask_json(METADATA_DELTAS, request, ANSWER_WITHIN_MS)
        except PeerError as error:
            logger.info("the controller, broker %d: %s", self.controller_id, error)
            return False
        return answer.get("should_shut_down") is True

    def _request(self, wait_ms: int) -> dict[str, Any]:
        return {
            "broker": self._registration.broker_id,
            "broker_epoch": self._registration.broker_epoch,
            "controller_epoch": self._epoch,
            "version": self._version,
            "wait_ms": wait_ms,
        }

    async def _apply(self, controller_id: int, answer: dict[str, Any]) -> bool:
        """False if nothing was applied. Raises DeltaTextError."""
        epoch = answer["controller_epoch"]
        if epoch != self._epoch and "snapshot" not in answer:
            self._version = UNKNOWN_VERSION
            return False
        view, applied = self._view, False
        other = None
        if "snapshot" in answer:
            other = await in_turns(decode_snapshot(answer["snapshot"]))

        async def find() -> Iterable[MetadataDelta]:
            """Checks first: this broker may have become the controller while it waited."""
            nonlocal applied
            image = view.image
            if controller_id != self.controller_id or epoch < image.controller_epoch:
                return ()  # a late response of a deposed controller
            applied = True
            if other is None:
                # Each depends on those before, which are in the image when it is decoded.
                return (decode_delta(each, image) for each in answer.get("deltas", ()))
            if other.cluster_id != image.cluster_id:
                # A broker of another cluster listens where ours did.
                raise DeltaTextError(f"they belong to cluster {other.cluster_id}")
            return await in_turns(differences_in_steps(image, other))

        await view.apply_in_turn(find)
        if not applied or controller_id != self.controller_id:
            return False
        self._epoch, self._version = epoch, answer["version"]
        return True

    async def _probe_controller(self, controller_id: int) -> None:
        address = self._peers.address(controller_id)
        refused = address is not None and await probe(*address) is Probe.REFUSED
        if address is None or refused:
            await self._on_out_of_reach(controller_id, refused)

    async def _run(self) -> None:
        if self._has_begun:
            self._version = UNKNOWN_VERSION  # after a failure a delta may be partly applied
        self._has_begun = True
        while True:
            self._changed.clear()
            if self.controller_id in (NO_LEADER, self._registration.broker_id):
                await self._changed.wait()
            elif not await self.fetch_once(WAIT_MS):
                await asyncio.sleep(RETRY_MS / 1000)
