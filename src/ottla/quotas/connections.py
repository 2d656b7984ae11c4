"""How many connections may be opened a second: to a broker, to a listener, by each address.

KIP-612, ConnectionQuotas.
"""

from __future__ import annotations

import contextlib
from ipaddress import ip_address
from typing import Final

from ottla.quotas.entity import DEFAULT
from ottla.quotas.forgetting import evict
from ottla.quotas.rate import Rate, Windows, in_ms

MAX_ADDRESSES: Final = 10_000


def address(text: str) -> str:
    """An IP address as it is compared. Raises ValueError."""
    found = ip_address(text.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


class ConnectionRates:
    """The connections of all addresses with a limit."""

    def __init__(self, windows: Windows) -> None:
        self.is_on = False
        """Whether any address has a limit."""
        self._windows = windows
        self._limits: dict[str, float] = {}
        self._rates: dict[str, Rate] = {}

    def __len__(self) -> int:
        """How many addresses are kept."""
        return len(self._rates)

    def set(self, ip: str, limit: float | None) -> None:
        """The limit of an address, or of DEFAULT; None for none of its own."""
        if limit is None:
            self._limits.pop(ip, None)
        else:
            self._limits[ip] = limit
        self.is_on = bool(self._limits)
        if not self.is_on:
            self._rates.clear()

    def opened(self, host: str, now_ms: int) -> int:
        """Another connection. Returns 0, or for how long it is kept waiting before it is closed, at
        most a window; then it does not count.
        """
        with contextlib.suppress(ValueError):
            host = address(host)
        limit = self._limits.get(host, self._limits.get(DEFAULT))
        if limit is None:
            return 0
        rate = self._rates.get(host)
        if rate is None:
            if len(self._rates) >= MAX_ADDRESSES:
                evict(self._rates, MAX_ADDRESSES, lambda each: each.is_like_new(0, now_ms))
            rate = self._rates[host] = Rate(self._windows, now_ms)
        if not limit:
            return self._windows.size_ms
        rate.record(1, now_ms)
        throttle_ms = _throttle_ms(rate, limit, now_ms, self._windows)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms


class CreationRate:
    """All connections to a broker or to one of its listeners."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._rate: Rate | None = None

    def opened(self, limit: float, now_ms: int) -> int:
        """Another connection. Returns for how long it waits, at most a window; then it is accepted,
        and counts.
        """
        if self._rate is None:
            self._rate = Rate(self._windows, now_ms)
        self._rate.record(1, now_ms)
        if not limit:
            return self._windows.size_ms
        return _throttle_ms(self._rate, limit, now_ms, self._windows)

    def take_back(self, now_ms: int) -> None:
        """It was not accepted after all."""
        if self._rate is not None:
            self._rate.record(-1, now_ms)


def _throttle_ms(rate: Rate, limit: float, now_ms: int, windows: Windows) -> int:
    throttle = rate.over(limit, now_ms)
    return max(1, in_ms(min(throttle, windows.size_ms))) if throttle else 0
