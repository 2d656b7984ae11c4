"""Clients that speak TCP reach a broker that speaks WebSocket through this."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from ottla.testing.ports import HOST

READ_BYTES = 100_000
START_WITHIN_S = 30


async def _into_frames(reader: asyncio.StreamReader, websocket: ClientConnection) -> None:
    while data := await reader.read(READ_BYTES):
        await websocket.send(data)
    await websocket.close()


async def _out_of_frames(websocket: ClientConnection, writer: asyncio.StreamWriter) -> None:
    async for message in websocket:
        assert isinstance(message, bytes)
        writer.write(message)
        await writer.drain()


@contextmanager
def bridge(port: int, url: str, context: ssl.SSLContext | None = None) -> Iterator[None]:
    """What comes to `port` goes to `url` while the context is open."""
    ready = threading.Event()
    ends: list[Callable[[], object]] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, WebSocketException, asyncio.CancelledError):
            async with connect(url, subprotocols=[Subprotocol("kafka")], ssl=context) as websocket:
                back = asyncio.ensure_future(_out_of_frames(websocket, writer))
                with suppress(OSError, ConnectionClosed):
                    await _into_frames(reader, websocket)
                await back
        writer.close()

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(ended.set))
        server = await asyncio.start_server(carry, HOST, port)
        ready.set()
        await ended.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(START_WITHIN_S), f"nothing listens on port {port}"
    try:
        yield
    finally:
        ends[0]()
        thread.join()
