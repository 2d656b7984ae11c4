"""kazoo with pipelining: many requests a write, many responses a read, only one thread.

kazoo sends one request for each turn of its loop (two `select`, one `send`, one byte through a
socket pair) and hands each response through a condition and a queue to another thread: about 5,000
requests a second. Here its connection thread sends all waiting requests in one write, reads all
available responses in one read, and runs their callbacks itself. kazoo still does the protocol:
connecting, sessions, pings, serialization.

Wire format (zookeeper.jute): each packet is a 4-byte length and a record; integers are big-endian,
a string or buffer has a 4-byte length before it (-1 for none).
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, ConnectionDropped, ZookeeperError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import (
    MultiHeader,
    int_struct,
    multiheader_struct,
    read_buffer,
    stat_struct,
    write_string,
)
from kazoo.protocol.states import ZnodeStat
from kazoo.retry import KazooRetry

MAX_IN_FLIGHT: Final = 2_000
"""Unanswered requests. The server itself stops reading at 1,000 from all its clients."""
_MAX_WRITE_BYTES: Final = 1 << 18
_READ_BYTES: Final = 1 << 18
_GET_DATA: Final = 4
_GET_CHILDREN: Final = 8
_ERROR: Final = -1

_silent = logging.getLogger("ottla.zookeeper.kazoo")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False
_silent.setLevel(logging.CRITICAL + 1)


class Answer:
    """Replaces kazoo's AsyncResult: one call, from kazoo's thread, with the response or error."""

    __slots__ = ("abandoned", "notify")

    def __init__(self, notify: Callable[[Answer, Any, Exception | None], None]) -> None:
        self.notify = notify
        self.abandoned = False
        """True: nobody waits any more; if the request was not sent yet, it is dropped."""

    def set(self, value: Any = None) -> None:
        """kazoo received the response."""
        self.notify(self, value, None)

    def set_exception(self, error: Exception) -> None:
        """kazoo reports an error."""
        self.notify(self, None, error)


@dataclass(frozen=True, slots=True)
class MultiRead:
    """Many reads in one request (operation 22, ZooKeeper 3.6): (path, wants children?) each."""

    reads: Sequence[tuple[str, bool]]

    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """The request's body, for kazoo."""
        parts = bytearray()
        for path, children in self.reads:
            kind = _GET_CHILDREN if children else _GET_DATA
            parts += multiheader_struct.pack(kind, False, -1) + write_string(path) + b"\0"
        return bytes(parts + multiheader_struct.pack(-1, True, -1))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """For each read: (data, ZnodeStat), a list of names, or a kazoo exception."""
        answers: list[Any] = []
        while True:
            header, offset = MultiHeader.deserialize(data, offset)
            if header.done:
                return answers
            if header.type == _GET_DATA:
                content, offset = read_buffer(data, offset)
                stat = ZnodeStat._make(stat_struct.unpack_from(data, offset))
                offset += stat_struct.size
                answers.append((content, stat))
            elif header.type == _GET_CHILDREN:
                names, offset = _read_names(data, offset)
                answers.append(names)
            elif header.type == _ERROR:
                answers.append(EXCEPTIONS[int_struct.unpack_from(data, offset)[0]]())
                offset += int_struct.size
            else:
                raise ZookeeperError(f"operation {header.type} in the answer of a multiRead")


def _read_names(data: bytes, offset: int) -> tuple[list[str], int]:
    (count,) = int_struct.unpack_from(data, offset)
    offset += int_struct.size
    names = []
    for _ in range(count):
        (length,) = int_struct.unpack_from(data, offset)
        offset += int_struct.size
        names.append(data[offset : offset + length].decode())
        offset += length
    return names, offset


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Runs callbacks in the connection's thread: ours only append to a queue."""

    connect_timeout_s = 1.0

    def start(self) -> None:
        """Starts no worker threads."""

    def stop(self) -> None:
        """See `start`."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, **named: Any) -> Any:
        # kazoo would wait for one dead host for the whole session timeout, and lose the session.
        return super().create_connection(*args, **{**named, "timeout": self.connect_timeout_s})


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection with many requests a write and many responses a read."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._xid = 0
        self._input = bytearray()
        self._heard = 0.0
        self._woken = False

    def wake(self) -> None:
        """Requests are waiting (any thread). One byte is enough for any number of them."""
        if not self._woken:
            self._woken = True
            waker = self._write_sock
            if waker is not None:
                try:
                    waker.send(b"\0")
                except OSError:
                    return  # closed: the callers learn that the session has ended

    def zk_loop(self) -> None:
        """kazoo's thread; it closes its sockets at the end."""
        try:
            super().zk_loop()
        finally:
            self.close()

    def _connect(self, *args: Any) -> Any:
        self._input.clear()
        timeouts = super()._connect(*args)
        self._heard = time.monotonic()
        # Requests made meanwhile sent their wake-up byte to the previous connection.
        self._woken = False
        self.wake()
        return timeouts

    def _read(self, length: int, timeout: float) -> bytes:
        """As kazoo's, but uses bytes left over from earlier reads first."""
        while len(self._input) < length:
            with self._socket_error_handling():
                if not self.handler.select([self._socket], [], [], timeout)[0]:
                    raise self.handler.timeout_exception("no answer")
                chunk = self._socket.recv(max(_READ_BYTES, length - len(self._input)))
            if not chunk:
                raise ConnectionDropped("closed by the server")
            self._input += chunk
        taken = bytes(memoryview(self._input)[:length])
        del self._input[:length]
        return taken

    def _read_socket(self, read_timeout: float) -> Any:
        """Handles all responses that have arrived completely."""
        self._heard = time.monotonic()
        answer = super()._read_socket(read_timeout)
        while answer is None and self._whole_packet():
            answer = super()._read_socket(read_timeout)
        if self.client._queue:
            self.wake()
        return answer

    def _whole_packet(self) -> bool:
        if len(self._input) < int_struct.size:
            return False
        (length,) = int_struct.unpack_from(self._input, 0)
        return bool(len(self._input) >= int_struct.size + length)

    def _send_request(self, read_timeout: float, connect_timeout: float) -> None:
        """Sends all waiting requests, within the limits."""
        self._read_sock.recv(4096)
        self._woken = False
        client = self.client
        if client._pending and time.monotonic() - self._heard > read_timeout:
            # Requests count as pings: kazoo would never notice a server that reads but does not
            # answer.
            raise ConnectionDropped("no answer")
        parts = bytearray()
        while (
            client._queue and len(client._pending) < MAX_IN_FLIGHT and len(parts) < _MAX_WRITE_BYTES
        ):
            request, answer = client._queue.popleft()
            if answer is not None and answer.abandoned:
                continue
            self._xid = (self._xid % 0x7FFFFFFF) + 1
            body = int_struct.pack(self._xid) + int_struct.pack(request.type) + request.serialize()
            client._pending.append((request, answer, self._xid))
            parts += int_struct.pack(len(body)) + body
        if parts:
            self._write(parts, connect_timeout)
        if client._queue and len(client._pending) < MAX_IN_FLIGHT:
            self.wake()


class Client(KazooClient):  # type: ignore[misc]
    """kazoo's client on that connection. kazoo's log is silent; the session logs what matters."""

    def __init__(self, hosts: str, session_timeout_ms: int) -> None:
        handler = _Handler()
        retry = KazooRetry(
            max_tries=-1, delay=0.05, backoff=2, max_delay=1.0, sleep_func=handler.sleep_func
        )
        super().__init__(
            hosts,
            timeout=session_timeout_ms / 1000,
            handler=handler,
            connection_retry=retry,
            logger=_silent,
        )
        handler.connect_timeout_s = max(1.0, session_timeout_ms / 3000 / len(self.hosts))
        self._connection = _Connection(self, self._conn_retry.copy(), logger=_silent)

    def ask(self, request: Any, answer: Answer) -> None:
        """Queue a request; `answer` is called from the connection's thread."""
        self._queue.append((request, answer))
        self._connection.wake()

    def give_up(self) -> None:
        """End the connection's thread soon, whatever it waits for (any thread)."""
        self._stopped.set()
        open_socket = self._connection._socket
        if open_socket is not None:
            try:
                open_socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # closed already
