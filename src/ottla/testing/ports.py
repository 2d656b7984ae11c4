"""Ports that nobody else on this machine takes between their choice and their use."""

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
    """The ports from `first` to before `past`, shared with other processes in blocks of `size`.

    Who holds a block's first port, by its UDP number, until its process ends has the others: nobody
    else is given them, be their server not up yet or down for a while. So test runs side by side
    never get in each other's way, nor does a row of ports have another's server in its midst.
    """

    def __init__(self, first: int, past: int, size: int = 16) -> None:
        self._size = size
        self._starts = range(first, past - size + 1, size)
        self._held: list[socket.socket] = []
        self._left: list[int] = []
        """Of the block held last."""

    def free(self, count: int) -> list[int]:
        """Raises OSError where there are no more."""
        chosen: list[int] = []
        while len(chosen) < count:
            if not self._left:
                self._left = self._next_block()
            if is_free(port := self._left.pop(0)):
                chosen.append(port)
        return chosen

    def row(self, count: int) -> list[int]:
        """As `free`, each port one above that before it; fewer than a block has."""
        assert count < self._size, count
        while True:
            if len(self._left) < count:
                self._left = self._next_block()
            row, self._left = self._left[:count], self._left[count:]
            if all(map(is_free, row)):
                return row

    def _next_block(self) -> list[int]:
        # At random: in the lowest block a server of somebody's own is likeliest.
        for start in random.SystemRandom().sample(self._starts, len(self._starts)):
            if (holder := claim(start)) is not None:
                self._held.append(holder)
                return list(range(start + 1, start + self._size))
        last = self._starts[-1] + self._size - 1
        raise OSError(f"no free ports from {self._starts[0]} to {last}")


def free_ports(count: int) -> list[int]:
    """That many free ports, which nobody is given again before this process ends.

    A port of the kernel's ephemeral range may become some connection's own end while its broker is
    down, and the broker could not come back to it: so they are taken below that range.
    """
    return _blocks.free(count)


def free_row(count: int) -> list[int]:
    """As `free_ports`, each port one above that before it; at most 15."""
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
    """Hold a free port for a child process that is going to listen there: closing the socket ends
    that. None where somebody listens there, or holds it.

    A TCP socket of ours would be in the child's way, so the UDP port of that number stands for it:
    it has one owner on the machine, whatever folders and users there are, and ends with its owner.
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
