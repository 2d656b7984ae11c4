"""A TCP proxy that identifies its caller and can fall silent, as a cut network does.

A cut connection is not closed: the proxy stops reading from both sides, so each waits for the
other. The proxy accepts new connections during the cut but never answers them. When the cut ends,
it aborts these connections, and clients reconnect.

A proxy does not listen while its target is down: callers are refused, as by the target's own port.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ottla.testing.ports import HOST

CHUNK_BYTES: Final = 1 << 16
LOOK_AGAIN_S: Final = 0.02
CONNECT_WITHIN_S: Final = 5.0
BACKLOG: Final = 256

ReadCaller = Callable[[bytes], int | None]
"""Identifies the caller by its first bytes; raises MoreBytesError while these are too few."""


class MoreBytesError(Exception):
    """The first bytes do not identify the caller yet."""


_REQUEST_HEADER: Final = struct.Struct(">ihhih")
MAX_CLIENT_ID_BYTES: Final = 256


def read_broker(data: bytes) -> int | None:
    """The calling broker, from the client id `broker-<id>-...` of its first request, or None."""
    if len(data) < _REQUEST_HEADER.size:
        raise MoreBytesError
    *_, length = _REQUEST_HEADER.unpack_from(data)
    if not 0 <= length <= MAX_CLIENT_ID_BYTES:
        return None
    if len(data) < _REQUEST_HEADER.size + length:
        raise MoreBytesError
    words = data[_REQUEST_HEADER.size :][:length].decode("ascii", errors="replace").split("-")
    if len(words) < 3 or words[0] != "broker" or not words[1].isdecimal():
        return None
    return int(words[1])


@dataclass(eq=False)
class Link:
    """One connection through a proxy."""

    caller: int | None
    open_door: asyncio.Event
    """Set while the link forwards bytes; cleared while it is cut."""
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def is_cut(self) -> bool:
        return not self.open_door.is_set()

    def abort(self) -> None:
        """End both connections with a reset."""
        for writer in self.writers:
            with suppress(OSError):
                # Linger 0 sends a reset, so that neither side takes this for an orderly close.
                peer = writer.get_extra_info("socket")
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on `port` of this machine for `target`, while the target listens.

    `owner` is the broker whose traffic passes here. `read_caller` identifies the caller; without it
    every caller is `owner`. `is_cut(caller, owner)` returns whether the two are cut off from each
    other now. All methods run on the loop's thread.
    """

    def __init__(
        self,
        owner: int,
        port: int,
        target: tuple[str, int],
        is_cut: Callable[[int, int], bool],
        read_caller: ReadCaller | None = None,
    ) -> None:
        self.owner = owner
        self.port = port
        self.target = target
        self.links: set[Link] = set()
        self.resets = False
        self.answer_delay_s = 0.0
        """Each piece of an answer, of up to CHUNK_BYTES, passes this much later."""
        self._is_cut = is_cut
        self._read_caller = read_caller
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._is_shut = asyncio.Event()
        self._may_open = asyncio.Event()
        self._may_open.set()
        self._keeper: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start to listen as soon as the target does."""
        self._is_shut.set()
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End everything."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
        self.shut()
        self.abort_links(lambda link: True)
        for task in tuple(self._tasks):
            task.cancel()

    def shut(self, *, stay: bool = False) -> None:
        """Stop listening until the target is up again; with `stay`, until `may_open`."""
        if stay:
            self._may_open.clear()
        if self._server is not None:
            self._server.close()
            self._server = None
        self._is_shut.set()

    @property
    def is_open(self) -> bool:
        """Whether it listens now."""
        return self._server is not None

    def may_open(self) -> None:
        """Listen again as soon as the target does."""
        self._may_open.set()

    def cut_links(self) -> None:
        """Silence the links that are cut now; with `resets`, end them."""
        for link in self.links:
            if link.caller is not None and self._is_cut(link.caller, self.owner):
                link.open_door.clear()
        if self.resets:
            self.abort_links(lambda link: link.is_cut)

    def heal_links(self) -> None:
        """End the links that were cut, so that both sides reconnect."""
        self.abort_links(lambda link: link.is_cut)

    def abort_links(self, which: Callable[[Link], bool]) -> None:
        for link in tuple(self.links):
            if which(link):
                link.abort()
                link.open_door.set()

    async def _keep(self) -> None:
        """Listen again whenever the target is back."""
        while not self._closed:
            await self._is_shut.wait()
            await self._may_open.wait()
            try:
                _, writer = await asyncio.open_connection(*self.target)
            except OSError:
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            writer.transport.abort()
            try:
                self._server = await asyncio.start_server(
                    self._serve, HOST, self.port, backlog=BACKLOG
                )
            except OSError:
                # A connection may hold the port for a moment after `shut`.
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            self._is_shut.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = Link(None, asyncio.Event(), [writer])
        link.open_door.set()
        self.links.add(link)
        try:
            await self._pass_on(link, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # Only `close` cancels; asyncio would print a traceback for a connection's task.
            assert self._closed
        finally:
            link.abort() if link.is_cut else self._close_link(link)
            self.links.discard(link)
            self._tasks.discard(task)

    @staticmethod
    def _close_link(link: Link) -> None:
        for writer in link.writers:
            writer.close()

    async def _pass_on(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first = await self._meet(link, reader)
        if link.caller is not None and self._is_cut(link.caller, self.owner):
            link.open_door.clear()
            if self.resets:
                return
        await link.open_door.wait()
        if writer.transport.is_closing():
            return
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                to_reader, to_writer = await asyncio.open_connection(*self.target)
        except ConnectionRefusedError:
            self.shut()
            link.abort()
            return
        except (OSError, TimeoutError):
            link.abort()
            return
        link.writers.append(to_writer)
        to_writer.write(first)
        await to_writer.drain()
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pump(link, reader, to_writer))
            both.create_task(self._pump(link, to_reader, writer, answers=True))
        await self._check_target()

    async def _check_target(self) -> None:
        """Stop listening if the target is down: a connection that ends may mean that."""
        try:
            _, writer = await asyncio.open_connection(*self.target)
        except ConnectionRefusedError:
            self.shut()
        except OSError:
            pass
        else:
            writer.transport.abort()

    async def _meet(self, link: Link, reader: asyncio.StreamReader) -> bytes:
        """Identify the caller; return the bytes read for that."""
        if self._read_caller is None:
            link.caller = self.owner
            return b""
        data = b""
        while True:
            piece = await reader.read(CHUNK_BYTES)
            data += piece
            try:
                link.caller = self._read_caller(data)
            except MoreBytesError:
                if not piece:
                    raise asyncio.IncompleteReadError(data, None) from None
                continue
            return data

    async def _pump(
        self,
        link: Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answers: bool = False,
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                if answers and self.answer_delay_s:
                    await asyncio.sleep(self.answer_delay_s)
                await link.open_door.wait()
                writer.write(data)
                await writer.drain()
            await link.open_door.wait()
        except OSError:
            # A cut also hides that one end is gone.
            await link.open_door.wait()
        finally:
            for each in link.writers:
                each.close()
