"""Counts the open connections of a broker, in total and of one address (KIP-402), and limits their
memory. `admission` lets them in.
"""

from __future__ import annotations

import asyncio
import heapq
import resource
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final, Protocol

from ottla.config import BrokerConfig
from ottla.network.connection_memory import ConnectionMemory, default_bytes
from ottla.quotas.connections import CreationRate
from ottla.quotas.rate import Windows

PART_OF_OPEN_FILES: Final = 0.75
"""The part of the process's open file limit that connections may use; logs need the rest."""


class Closable(Protocol):
    """An open connection."""

    active_ms: int

    def abort(self) -> None: ...


class Entry(Protocol):
    """The admission to one listener."""

    is_protected: bool
    connections: Callable[[], Iterable[Closable]]

    @property
    def waiting(self) -> int: ...

    def proceed(self) -> None: ...


class ConnectionLimits:
    """Counts the connections of all listeners."""

    def __init__(self, config: BrokerConfig) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._config = config
        self._max_files = int(files * PART_OF_OPEN_FILES)
        self._overrides = config.connection_limits()
        self._by_host: dict[str, int] = {}
        self.windows = Windows(config.quota_window_num, config.quota_window_size_seconds * 1000)
        self.rate = CreationRate(self.windows)
        """Of new connections to all listeners but the one of the other brokers."""
        self.admissions: list[Entry] = []
        """Of all listeners."""
        self.count = 0
        self.held = 0
        """All that have a file number: those that wait, too."""
        self.refused = 0
        self._is_look_due = False
        most_bytes = default_bytes()
        self.memory = ConnectionMemory(
            config.queued_max_request_bytes if config.queued_max_request_bytes > 0 else most_bytes,
            most_bytes,
        )

    @property
    def has_too_many_files(self) -> bool:
        return self.held > self._max_files

    @property
    def waiting(self) -> int:
        """How many connections wait."""
        return sum(each.waiting for each in self.admissions)

    def too_many_of(self, host: str) -> str | None:
        """Why this address may not have another connection."""
        most = self._overrides.get(host, self._config.max_connections_per_ip)
        if self._by_host.get(host, 0) < most:
            return None
        return f"{most} from it are open: the limit (max.connections.per.ip)"

    def take(self, host: str) -> None:
        self.count += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1

    def release(self, host: str) -> None:
        self.count -= 1
        self.held -= 1
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]
        self._look_soon()

    def changed(self) -> None:
        """The limits are others now."""
        self.end_excess()
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._is_look_due and any(each.waiting for each in self.admissions):
            self._is_look_due = True
            # Not at once: the connection that has ended is still at it.
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._is_look_due = False
        for each in self.admissions:
            each.proceed()

    def end_excess(self) -> None:
        """Ends as many connections as there are too many, those that have been idle longest; none
        of other brokers.
        """
        excess = self.count - self._config.max_connections
        if excess > 0:
            open_ = (
                connection
                for each in self.admissions
                if not each.is_protected
                for connection in each.connections()
            )
            for connection in heapq.nsmallest(excess, open_, key=attrgetter("active_ms")):
                connection.abort()
