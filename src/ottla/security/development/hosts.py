"""The names and addresses of this machine, for certificates."""

from __future__ import annotations

import re
import socket

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def own_hosts() -> list[str]:
    """Those by which this machine is reached from itself, and its name."""
    hosts = ["localhost", "127.0.0.1", "::1"]
    name = socket.gethostname()
    if _HOST_NAME.fullmatch(name):
        hosts.append(name)
    return list(dict.fromkeys(hosts))
