"""Free ports that no other process of this machine takes between their choice and their use."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
_FIRST: Final = 10_000
_PAST: Final = 32_000
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Blocks:
    """The ports from `first` up to `past` (exclusive), shared by processes in blocks of `size`.

    A process owns a block by holding the UDP port of the block's first number until it ends. No
    other process gets the block's ports, even while their servers are down. Test runs side by side
    therefore never collide, and a row of ports never contains another run's server.
    """

    def __init__(self, first: int, past: int, size: int = 16) -> None:
        self._size = size
        self._starts = range(first, past - size + 1, size)
        self._held: list[socket.socket] = []
        self._left: list[int] = []
        """The ports left in the newest block."""

    def free(self, count: int) -> list[int]:
        """Raises OSError if no ports are left."""
        chosen: list[int] = []
        while len(chosen) < count:
            if not self._left:
                self._left = self._next_block()
            if is_free(port := self._left.pop(0)):
                chosen.append(port)
        return chosen

    def row(self, count: int) -> list[int]:
        """Like `free`, but consecutive ports; fewer than a block holds."""
        assert count < self._size, count
        while True:
            if len(self._left) < count:
                self._left = self._next_block()
            row, self._left = self._left[:count], self._left[count:]
            if all(map(is_free, row)):
                return row

    def _next_block(self) -> list[int]:
        # Random order: an unrelated server is most likely in the lowest block.
        for start in random.SystemRandom().sample(self._starts, len(self._starts)):
            if (holder := claim(start)) is not None:
                self._held.append(holder)
                return list(range(start + 1, start + self._size))
        last = self._starts[-1] + self._size - 1
        raise OSError(f"no free ports from {self._starts[0]} to {last}")


def free_ports(count: int) -> list[int]:
    """Return `count` free ports, reserved until this process ends.

    They are below the kernel's ephemeral range: a connection could take an ephemeral port while its
    broker is down, and the broker could not restart on it.
    """
    return _blocks.free(count)


def free_row(count: int) -> list[int]:
    """Like `free_ports`, but consecutive ports; at most 15."""
    return _blocks.row(count)


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def claim(port: int, host: str = HOST) -> socket.socket | None:
    """Reserve a free port for a child process that will listen there, until the socket is closed.
    Returns None if the port is in use or reserved.

    A TCP socket would block the child, so the UDP port of the same number serves as the lock: it
    has one owner on the machine, across folders and users, and is released when the owner ends.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        holder.bind((host, port))
    except OSError:
        holder.close()
        return None
    if not is_free(port, host):
        holder.close()
        return None
    return holder


def _first_ephemeral_port() -> int:
    try:
        first = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _PAST
    return first if first > _FIRST + 1000 else _PAST


_blocks: Final = Blocks(_FIRST, min(_PAST, _first_ephemeral_port()))
