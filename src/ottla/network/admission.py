"""Who may connect to a listener, and when: numbers and rates of connections (KIP-402, KIP-612).

    arrives --> waits ----------------------------------> begins --> ends
                in the order of arrival, for the rate        |
                of broker and listener, and for a free       +--> too many of its address: ends
                place (max.connections)                      +--> its address comes too often:
                                                                  ends after a while

As in Kafka's ConnectionQuotas, whose acceptor blocks; here connections that wait are accepted and
not read, at most `socket.listen.backlog.size` of a listener, and none beyond the limit of open
files. On the listener of the other brokers, max.connections does not count those of the other
listeners: instead, the ones that have been idle longest there end.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

from ottla.config import BrokerConfig
from ottla.config.listener_security import ListenerLimits
from ottla.network.connection_limits import Closable, ConnectionLimits
from ottla.quotas.connections import CreationRate

logger = logging.getLogger("ottla.listener")

SAY_AGAIN_MS: Final = 30_000
MAX_ENDING: Final = 100
"""Of a listener: kept for a while because their address comes too often."""


class _State(Enum):
    WAITING = auto()
    OPEN = auto()
    ENDING = auto()
    """Its address comes too often."""
    OVER = auto()


class Arrival:
    """A connection from its arrival on."""

    __slots__ = ("begin", "due_ms", "end", "host", "state", "timer")

    def __init__(self, host: str, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self.host = host
        self.begin = begin
        self.end = end
        self.due_ms: int | None = None
        """The rate lets it in then; None before its turn."""
        self.state = _State.WAITING
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        return self.state is _State.WAITING


class Admission:
    """Of one listener. For the event loop's thread only."""

    def __init__(
        self,
        listener: str,
        config: BrokerConfig,
        own: ListenerLimits,
        limits: ConnectionLimits,
        *,
        is_protected: bool,
        throttle_ms: Callable[[str], int],
        connections: Callable[[], Iterable[Closable]],
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`own` has the limits of this listener. `is_protected`: it is the one of the other
        brokers. `throttle_ms` returns for how long a connection is kept before it is closed because
        its address comes too often; 0: it may stay. `connections` are those that are open.
        """
        self.own = own
        self.is_protected = is_protected
        self.connections = connections
        self.count = 0
        """How many are open."""
        self._listener = listener
        self._config = config
        self._limits = limits
        self._throttle_ms = throttle_ms
        self._monotonic_ms = monotonic_ms
        self._waiting: deque[Arrival] = deque()
        self._ending: dict[Arrival, None] = {}
        """In the order of arrival."""
        self._rate = CreationRate(limits.windows)
        self._timer: asyncio.TimerHandle | None = None
        self._said_ms: int | None = None
        self._is_at_work = False
        limits.admissions.append(self)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def arrive(self, host: str, begin: Callable[[], object], end: Callable[[], object]) -> Arrival:
        """Calls `begin`, now or later, or `end`, if it must not stay."""
        arrival = Arrival(host, begin, end)
        self._limits.held += 1
        most = self._config.socket_listen_backlog_size
        if self._limits.has_too_many_files:
            self._refuse(arrival, "too many are open: the limit of open files")
        elif len(self._waiting) >= most:
            self._refuse(arrival, f"{most} wait already (socket.listen.backlog.size)")
        else:
            self._waiting.append(arrival)
            self.proceed()
        return arrival

    def leave(self, arrival: Arrival) -> None:
        """The connection has ended, from whatever state."""
        if arrival.state is _State.WAITING:
            self._waiting.remove(arrival)
            self._limits.held -= 1
        elif arrival.state is _State.ENDING:
            assert arrival.timer is not None
            arrival.timer.cancel()
            self._ending.pop(arrival, None)
            self._limits.held -= 1
        elif arrival.state is _State.OPEN:
            self.release(arrival.host)
        arrival.state = _State.OVER

    def release(self, host: str) -> None:
        """A connection that was open has ended."""
        self.count -= 1
        self._limits.release(host)

    def close(self) -> None:
        """Ends those that are not open."""
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            self._over(self._waiting.popleft())
        for arrival in list(self._ending):
            self._over(arrival)

    def proceed(self) -> None:
        """Lets in those whose turn it is."""
        if self._is_at_work:
            return
        self._is_at_work = True
        try:
            while self._waiting and self._is_turn_of(self._waiting[0]):
                self._let_in(self._waiting.popleft())
        finally:
            self._is_at_work = False

    def _is_turn_of(self, arrival: Arrival) -> bool:
        now_ms = self._monotonic_ms()
        if arrival.due_ms is None:
            arrival.due_ms = now_ms + self._wait_ms(now_ms)
        if arrival.due_ms > now_ms:
            if self._timer is not None:
                self._timer.cancel()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later((arrival.due_ms - now_ms) / 1000, self.proceed)
            return False
        reason = self._full()
        if reason is not None and (self._said_ms is None or now_ms >= self._said_ms + SAY_AGAIN_MS):
            self._said_ms = now_ms
            logger.warning("connections to listener %s wait: %s", self._listener, reason)
        return reason is None

    def _wait_ms(self, now_ms: int) -> int:
        """Until the rates let in another connection, which they count."""
        most = self._config.max_connection_creation_rate
        own = self.own.max_connection_creation_rate
        wait_ms = self._rate.opened(most if own is None else own, now_ms)
        if self.is_protected:
            return wait_ms
        return max(wait_ms, self._limits.rate.opened(most, now_ms))

    def _full(self) -> str | None:
        """Why there is no place; None if there is one."""
        most, own = self._config.max_connections, self.own.max_connections
        if self.count >= (most if own is None else own):
            return f"{self.count} are open on it, the limit (max.connections)"
        if not self.is_protected and self._limits.count >= most:
            return f"{self._limits.count} are open, the limit of the broker (max.connections)"
        return None

    def _let_in(self, arrival: Arrival) -> None:
        host, now_ms = arrival.host, self._monotonic_ms()
        throttle_ms = self._throttle_ms(host)
        if throttle_ms:
            # Closed at once, the client would come again at once.
            arrival.state = _State.ENDING
            self._rate.take_back(now_ms)
            if not self.is_protected:
                self._limits.rate.take_back(now_ms)
            if len(self._ending) >= MAX_ENDING:
                # They have a file number each, which those that come seldom need.
                self._over(next(iter(self._ending)))
            self._ending[arrival] = None
            loop = asyncio.get_running_loop()
            arrival.timer = loop.call_later(throttle_ms / 1000, self._over, arrival)
            return
        reason = self._limits.too_many_of(host)
        if reason is not None:
            self._refuse(arrival, reason)
            return
        arrival.state = _State.OPEN
        self.count += 1
        self._limits.take(host)
        arrival.begin()
        self._limits.end_excess()

    def _refuse(self, arrival: Arrival, reason: str) -> None:
        self._limits.refused += 1
        refused = self._limits.refused
        if refused & (refused - 1) == 0:  # the 1st, 2nd, 4th, 8th ... of them
            logger.warning(
                "refused %d connections so far, the last from %s: %s",
                refused,
                arrival.host,
                reason,
            )
        self._over(arrival)

    def _over(self, arrival: Arrival) -> None:
        arrival.state = _State.OVER
        if arrival.timer is not None:
            arrival.timer.cancel()
            self._ending.pop(arrival, None)
        self._limits.held -= 1
        arrival.end()
