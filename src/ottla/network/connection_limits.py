"""Limits the open connections, in total and from one address (KIP-402), and their memory."""

from __future__ import annotations

import resource
from typing import Final

from ottla.config import BrokerConfig
from ottla.network.connection_memory import ConnectionMemory, default_bytes

PART_OF_OPEN_FILES: Final = 0.75
"""The part of the process's open file limit that connections may use; logs need the rest."""


class ConnectionLimits:
    """Counts the connections of all listeners."""

    def __init__(self, config: BrokerConfig) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._config = config
        self._max_files = int(files * PART_OF_OPEN_FILES)
        self._overrides = config.connection_limits()
        self._by_host: dict[str, int] = {}
        self.count = 0
        self.refused = 0
        most_bytes = default_bytes()
        self.memory = ConnectionMemory(
            config.queued_max_request_bytes if config.queued_max_request_bytes > 0 else most_bytes,
            most_bytes,
        )

    def admit(self, host: str, *, is_protected: bool = False) -> str | None:
        """Counts one more connection. Returns the reason if it is over a limit, otherwise None.

        `is_protected`: it is on the listener of the other brokers, which max.connections must not
        lock out (KIP-402).
        """
        self.count += 1
        self._by_host[host] = of_host = self._by_host.get(host, 0) + 1
        max_open = self._max_files
        if not is_protected:
            max_open = min(self._config.max_connections, max_open)
        max_of_host = self._overrides.get(host, self._config.max_connections_per_ip)
        reason = None
        if self.count > max_open:
            reason = f"{max_open} are open: the limit (max.connections, or of open files)"
        elif of_host > max_of_host:
            reason = f"{max_of_host} from it are open: the limit (max.connections.per.ip)"
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
