"""Requests that only the controller answers, handed on to it as they came (KIP-590's purpose).

The frame keeps its header, client id included; only the correlation id is the connection's own. So
every version of every such request works on every broker, and nothing is decoded on the way.

While there is no controller to be had the request waits for the next, and is sent again where the
connection broke off on the way, as in Kafka's NodeToControllerChannelManager: librdkafka gives an
admin request up for good when its connection ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.call import EndConnectionError
from ottla.broker.peer import PeerError
from ottla.protocol.versions import INTERNAL

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.protocol.frames import RequestHeader

FORWARD_WITHIN_MS = 30_000
RETRY_MS = 50


async def forward(
    node: Node, frame: memoryview, header: RequestHeader
) -> list[bytes | memoryview] | None:
    """The response's frame, in parts, for the request in `frame` (which begins behind the size).
    None where this broker has become the controller: it answers itself.

    Raises EndConnectionError where the controller cannot be had in time. Brokers' own requests do
    not wait: who sent them finds the controller himself.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + FORWARD_WITHIN_MS / 1000
    left_ms = FORWARD_WITHIN_MS
    while not node.controller.active:
        try:
            return await _ask(node, frame, header.correlation_id, left_ms)
        except PeerError as error:
            why = str(error)
        left_ms = int((until - loop.time()) * 1000) - RETRY_MS
        if header.key in INTERNAL or node.closing or left_ms <= 0:
            raise EndConnectionError(why)
        await asyncio.sleep(RETRY_MS / 1000)
    return None


async def _ask(
    node: Node, frame: memoryview, correlation_id: int, timeout_ms: int
) -> list[bytes | memoryview]:
    controller_id = node.image.controller_id
    if controller_id == node.config.id or controller_id < 0:
        raise PeerError("there is no controller to answer it now")
    try:
        peer = node.peers.peer(controller_id, "forwarding")
        body = await peer.ask_frame([bytes(frame)], timeout_ms)
    except PeerError as error:
        raise PeerError(f"the controller, broker {controller_id}: {error}") from None
    answer = memoryview(body)
    size = len(answer).to_bytes(4, "big")
    return [size + correlation_id.to_bytes(4, "big", signed=True), answer[4:]]
