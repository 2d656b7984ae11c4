"""TCP between simulated hosts, in memory: ordered, late, split, with back pressure.

A connection is two pipes. Written bytes arrive after a seeded delay, in order, in pieces of seeded
sizes. A cut between two hosts holds bytes in flight, and new connections hang. When a process dies,
its connections end on the other side, unless a cut hides that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

from simulation.process import Process

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop as Loop

MAX_DELAY_S: Final = 0.004
FIRST_PORT: Final = 20_000
MAX_PIECE_BYTES: Final = 1 << 18
HIGH_WATER_BYTES: Final = 1 << 16


class Network:
    """The listeners, the open connections, and the cuts between hosts."""

    def __init__(self, loop: Loop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.cuts: dict[frozenset[str], None] = {}
        self.stall_s: Callable[[Process, bytes], float] = lambda sender, data: 0.0
        """The extra delay of these bytes of a process. Later bytes of the same connection arrive
        after them; other connections are not delayed."""
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._connections: dict[Endpoint, None] = {}
        self._next_port = FIRST_PORT

    def listen(
        self, process: Process, factory: Callable[[], Any], host: Any, port: int
    ) -> Listener:
        """A host's name is its address. Raises OSError when the port is in use."""
        if not port:
            port, self._next_port = self._next_port, self._next_port + 1
        address = (process.host, port)
        known = self._listeners.get(address)
        if known is not None and known.process.is_alive:
            raise OSError(98, "Address already in use")
        listener = self._listeners[address] = Listener(self, process, factory, port)
        return listener

    def accepts(self, address: tuple[str, int]) -> bool:
        """Tell whether somebody listens there."""
        return self._open(address) is not None

    def _open(self, address: tuple[str, int]) -> Listener | None:
        listener = self._listeners.get(address)
        return listener if listener is not None and listener.accepts else None

    async def connect(
        self, process: Process, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Endpoint, Any]:
        """Raises ConnectionRefusedError without a listener; hangs while a cut lasts."""
        await asyncio.sleep(self.delay_s())
        while self.is_cut(process.host, host):
            await asyncio.sleep(0.05)
        listener = self._open((host, port))
        if listener is None:
            raise ConnectionRefusedError(111, "Connection refused")
        near = Endpoint(self, process, factory())
        far = Endpoint(self, listener.process, listener.process.context.run(listener.factory))
        near.far, far.far = far, near
        near.peername, far.peername = (host, port), (process.host, 40_000)
        near.sockname, far.sockname = (process.host, 40_000), (host, port)
        for end in (near, far):
            self._connections[end] = None
        near.protocol.connection_made(near)
        far.soon(far.protocol.connection_made, far)
        return near, near.protocol

    def delay_s(self) -> float:
        return 0.000_05 + self.random.random() ** 3 * MAX_DELAY_S

    def is_cut(self, one: str, other: str) -> bool:
        return bool(self.cuts) and frozenset((one, other)) in self.cuts

    def cut(self, one: str, other: str) -> None:
        self.cuts[frozenset((one, other))] = None

    def join(self, one: str, other: str) -> None:
        """End one cut and deliver the bytes it held."""
        self.cuts.pop(frozenset((one, other)), None)
        for end in list(self._connections):
            end.deliver_soon()

    def heal(self) -> None:
        """End every cut and deliver the held bytes."""
        self.cuts.clear()
        for end in list(self._connections):
            end.deliver_soon()

    def died(self, process: Process) -> None:
        """Close all connections and listeners of a dead process, as the kernel does."""
        for address in [key for key, each in self._listeners.items() if each.process is process]:
            del self._listeners[address]
        for end in [each for each in self._connections if each.process is process]:
            end.vanish()

    def closed(self, end: Endpoint) -> None:
        self._connections.pop(end, None)

    def stop_listening(self, listener: Listener) -> None:
        address = (listener.process.host, listener.port)
        if self._listeners.get(address) is listener:
            del self._listeners[address]


class Listener:
    """The server that `create_server` returns, and also its only socket."""

    def __init__(
        self, network: Network, process: Process, factory: Callable[[], Any], port: int
    ) -> None:
        self.process = process
        self.factory = factory
        self.port = port
        self.accepts = False
        self._network = network

    @property
    def sockets(self) -> tuple[Listener, ...]:
        return (self,)

    def getsockname(self) -> tuple[str, int]:
        return self.process.host, self.port

    async def start_serving(self) -> None:
        self.accepts = True

    def close(self) -> None:
        self.accepts = False
        self._network.stop_listening(self)

    async def wait_closed(self) -> None:
        """Nothing to wait for."""


class _Socket:
    """Socket options have no effect here."""

    def setsockopt(self, *_: Any) -> None:
        """Ignored."""


class Endpoint(asyncio.Transport):
    """One end of a connection: the transport of its process's protocol."""

    far: Endpoint
    peername: tuple[str, int]
    sockname: tuple[str, int]

    def __init__(self, network: Network, process: Process, protocol: Any) -> None:
        super().__init__()
        self.process = process
        self.protocol = protocol
        self._network = network
        self._inbox: deque[tuple[float, bytes | None]] = deque()
        """Bytes in flight to this end, with their arrival times; None means end of stream."""
        self._last_s = 0.0
        self._is_reading = True
        self._is_closing = False
        self._is_over = False
        self._is_full = False
        self._unread_bytes = 0
        self._high_bytes = HIGH_WATER_BYTES
        self._wakes = 0

    # The interface of an asyncio transport.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return _Socket()
        return {"peername": self.peername, "sockname": self.sockname}.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = HIGH_WATER_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.far._unread_bytes

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._is_closing:
            return
        data = b"".join(list_of_data)
        if data:
            self.far._send(data)
        if self.far._unread_bytes > self._high_bytes and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.deliver_soon()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.far._send(None)
            self.soon(self._lose, None)

    def abort(self) -> None:
        self.close()

    # Delivery of the bytes.

    def soon(self, callback: Callable[..., object], *args: Any) -> None:
        """Schedule a callback in this end's process."""
        self._network.loop.call_soon(callback, *args, context=self.process.context.copy())

    def _send(self, data: bytes | None) -> None:
        """Send bytes, or the end of the stream, to this end."""
        now_s = self._network.loop.time()
        stall_s = self._network.stall_s(self.far.process, data) if data else 0.0
        self._last_s = max(self._last_s, now_s + self._network.delay_s() + stall_s)
        self._inbox.append((self._last_s, data))
        self._unread_bytes += len(data or b"")
        self._wake_at(self._last_s)

    def _wake_at(self, when_s: float) -> None:
        self._network.loop.call_at(when_s, self._deliver, context=self.process.context.copy())

    def deliver_soon(self) -> None:
        if self._inbox:
            self.soon(self._deliver)

    def _deliver(self) -> None:
        """Deliver arrived bytes; the rest waits for its time, a reader or the end of a cut."""
        while self._inbox and self._is_reading and not self._is_over:
            when_s, data = self._inbox[0]
            if when_s > self._network.loop.time():
                return
            if self._network.is_cut(self.process.host, self.far.process.host):
                return
            self._inbox.popleft()
            if data is None:
                self._is_closing = True
                self._lose(None)
                return
            self._unread_bytes -= len(data)
            self._read(data)
            self.far._drained()

    def _read(self, data: bytes) -> None:
        if not isinstance(self.protocol, asyncio.BufferedProtocol):
            self.protocol.data_received(data)
            return
        view = memoryview(data)
        while view and not self._is_over:
            buffer = cast("memoryview", self.protocol.get_buffer(-1))
            count = min(len(buffer), len(view), self._network.random.randrange(1, MAX_PIECE_BYTES))
            buffer[:count] = view[:count]
            view = view[count:]
            self.protocol.buffer_updated(count)

    def _drained(self) -> None:
        if self._is_full and self.far._unread_bytes <= self._high_bytes // 4:
            self._is_full = False
            self.soon(self.protocol.resume_writing)

    def _lose(self, error: Exception | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._network.closed(self)
            self.protocol.connection_lost(error)

    def vanish(self) -> None:
        """This end's process died: the other end learns of it, unless a cut hides it."""
        self._is_closing = self._is_over = True
        self._network.closed(self)
        if not self.far._is_over:
            self.far._send(None)
