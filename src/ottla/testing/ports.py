"""Ports that nobody else on this machine takes between their choice and their use."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
MOST_TRIES: Final = 500
_FIRST: Final = 10_000
_PAST: Final = 32_000
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: Final[dict[int, socket.socket | None]] = {}
"""With what holds it."""


def free_ports(count: int, *, hold: bool = False) -> list[int]:
    """That many free ports, none of them given by this process before.

    A port of the kernel's ephemeral range may become some connection's own end while its broker is
    down, and the broker could not come back to it: so they are taken below that range. Two test
    runs side by side choose at random, which mostly keeps them apart. `hold` does so always: until
    this process ends nobody else is given the port, be its server not up yet or down for a while.
    """
    chosen: list[int] = []
    numbers = random.SystemRandom()
    past = min(_PAST, _first_ephemeral_port())
    for _ in range(MOST_TRIES):
        if len(chosen) == count:
            return chosen
        port = numbers.randrange(_FIRST, past)
        if port in _given or (holder := claim(port)) is None:
            continue
        if not hold:
            holder.close()
        _given[port] = holder if hold else None
        chosen.append(port)
    raise OSError(f"no {count} free ports between {_FIRST} and {past}")


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
