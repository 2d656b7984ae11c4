"""Forwards requests that only the controller answers to it, in an envelope (KIP-590).

The envelope holds the client's unchanged frame and its identity. So every version of every such
request works on every broker.

While no controller can be reached, the request waits for the next one. If the connection is lost,
the request is sent again, as in Kafka's NodeToControllerChannelManager: librdkafka gives up an
admin request when its connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.controller.image import ClusterImage
from ottla.network.client_session import ClientSession
from ottla.network.envelope import wrapped
from ottla.network.handlers import EndConnectionError
from ottla.network.peer import PeerError
from ottla.network.peers import Peers
from ottla.protocol.errors import ErrorCode
from ottla.protocol.primitives import Buffer

FORWARD_WITHIN_MS: Final = 30_000
RETRY_MS: Final = 50
PURPOSE: Final = "forwarding"


class ControllerForwarding:
    """Forwards requests to the current controller."""

    def __init__(
        self,
        broker_id: int,
        peers: Peers,
        image: Callable[[], ClusterImage],
        *,
        is_controller: Callable[[], bool],
        is_closing: Callable[[], bool],
    ) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self._image = image
        self._is_controller = is_controller
        self._is_closing = is_closing

    @property
    def is_controller(self) -> bool:
        """This broker is the controller."""
        return self._is_controller()

    async def forward(self, key: int, frame: Buffer, session: ClientSession) -> Buffer | None:
        """Returns the controller's response to the request in `frame`, both without their sizes.
        None if this broker has become the controller.

        Raises EndConnectionError if no controller can be reached in time.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + FORWARD_WITHIN_MS / 1000
        left_ms = FORWARD_WITHIN_MS
        while not self.is_controller:
            try:
                return await self._ask(frame, session, left_ms)
            except PeerError as error:
                why = str(error)
            left_ms = int((until - loop.time()) * 1000) - RETRY_MS
            if self._is_closing() or left_ms <= 0:
                raise EndConnectionError(why)
            await asyncio.sleep(RETRY_MS / 1000)
        return None

    async def _ask(self, frame: Buffer, session: ClientSession, timeout_ms: int) -> Buffer:
        controller_id = self._image().controller_id
        if controller_id == self._broker_id or controller_id < 0:
            raise PeerError("there is no controller")
        try:
            peer = self._peers.peer(controller_id, PURPOSE)
            response = await peer.ask(wrapped(frame, session), timeout_ms)
        except PeerError as error:
            raise PeerError(f"the controller, broker {controller_id}: {error}") from None
        if response.error_code is not ErrorCode.none or response.response_data is None:
            raise PeerError(
                f"the controller, broker {controller_id}: refused with {response.error_code.name}"
            )
        data: Buffer = response.response_data
        return data
