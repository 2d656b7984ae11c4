"""Requests that only the controller answers, handed on to it as they came (KIP-590's purpose).

The frame keeps its header, client id included; only the correlation id is the connection's own. So
every version of every such request works on every broker, and nothing is decoded on the way.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.broker.call import EndConnectionError
from ottla.broker.peer import PeerError

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.forwarding")

FORWARD_WITHIN_MS = 30_000


async def forward(node: Node, frame: memoryview, correlation_id: int) -> list[bytes | memoryview]:
    """The response's frame, in parts, for the request in `frame` (which begins behind the size).

    Raises EndConnectionError where the controller cannot be had: the client connects again, asks
    where the controller is, and comes back, as after any broker's end.
    """
    controller_id = node.image.controller_id
    if controller_id == node.config.id or controller_id < 0:
        raise EndConnectionError("there is no controller to answer it now")
    try:
        peer = node.peers.peer(controller_id, "forwarding")
        body = await peer.ask_frame([bytes(frame)], FORWARD_WITHIN_MS)
    except PeerError as error:
        raise EndConnectionError(f"the controller, broker {controller_id}: {error}") from None
    answer = memoryview(body)
    size = len(answer).to_bytes(4, "big")
    return [size + correlation_id.to_bytes(4, "big", signed=True), answer[4:]]
