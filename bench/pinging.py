"""Pings a broker: one small request after the other, a few milliseconds apart.

`python -m bench.pinging ADDRESS`: asks for the API versions on one connection, again and again.
Prints "ready" after the first response; then for each line on stdin the worst ping since the line
before, in milliseconds, and how many there were. A ping that is under way counts in.
"""

import gc
import select
import socket
import struct
import sys
import time
from typing import Self

from bench.client_process import ClientProcess
from bench.measure import ClientError

EVERY_MS = 4
WAIT_SECONDS = 120.0
# ApiVersions, version 0, without a client id, has no body.
REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def ping(connection: socket.socket) -> float:
    """The milliseconds of one request."""
    began = time.perf_counter()
    connection.sendall(REQUEST)
    left = 4 + struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
    while left > 4:
        piece = connection.recv(left - 4)
        if not piece:
            raise SystemExit("the broker ended the connection")
        left -= len(piece)
    return (time.perf_counter() - began) * 1000


class Pings:
    """A context manager with the process that pings; so the load does not slow it down."""

    def __init__(self, address: str) -> None:
        self._process = ClientProcess("the pings", "bench.pinging", [address])

    def __enter__(self) -> Self:
        self._process.wait_ready()
        return self

    def worst_ms(self) -> float:
        """Of the pings since the last call."""
        self._process.tell("")
        worst, count = self._process.line().split()
        if not int(count):
            raise ClientError("no ping was answered")
        return float(worst)

    def __exit__(self, *_: object) -> None:
        self._process.__exit__()


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    with socket.create_connection((host, int(port)), WAIT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ping(connection)
        print("ready", flush=True)
        gc.disable()
        worst, count = 0.0, 0
        while True:
            worst, count = max(worst, ping(connection)), count + 1
            if not select.select([sys.stdin], [], [], EVERY_MS / 1000)[0]:
                continue
            if not sys.stdin.readline():
                return
            print(worst, count, flush=True)
            worst, count = 0.0, 0


if __name__ == "__main__":
    main()
