"""How many connections may be open, in total and from one address (KIP-402)."""

from __future__ import annotations

import resource
from typing import Final

from ottla.config import BrokerConfig

PART_OF_OPEN_FILES: Final = 0.75
"""What connections may take of the process's limit of open files; the rest is for the log."""


class ConnectionLimits:
    """Counts the connections of all listeners."""

    def __init__(self, config: BrokerConfig) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._config = config
        self._most_files = int(files * PART_OF_OPEN_FILES)
        self._overrides = config.connection_limits()
        self._by_host: dict[str, int] = {}
        self.count = 0
        self.refused = 0

    def admit(self, host: str) -> str | None:
        """Counts one more connection; the text says why it is too many, if it is."""
        self.count += 1
        self._by_host[host] = of_host = self._by_host.get(host, 0) + 1
        most = min(self._config.max_connections, self._most_files)
        max_of_host = self._overrides.get(host, self._config.max_connections_per_ip)
        reason = None
        if self.count > most:
            reason = f"{most} are open, the most allowed (max.connections, or the limit of files)"
        elif of_host > max_of_host:
            reason = f"{max_of_host} of it are open, the most allowed (max.connections.per.ip)"
        if reason is not None:
            self.refused += 1
        return reason

    def release(self, host: str) -> None:
        self.count -= 1
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]
