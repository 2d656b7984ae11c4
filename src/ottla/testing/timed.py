"""The time of a broker or cluster in a test, which a test can advance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from ottla.testing.control_socket import ControlSocket
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.time_ahead import TimeAhead
from ottla.testing.topics import Topics

__tracebackhide__ = is_for_the_test

_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class Timed(Topics):
    """A part of `Broker` and `Cluster`."""

    def now_ms(self) -> int:
        """The time of the brokers, in ms since 1970; of several that which is furthest ahead."""
        return int(max(self._ask_at_once("now_ms")))

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> int:
        """Let so much time pass at once for the broker, or for all brokers of a cluster; returns
        their time, in ms since 1970.

        Everything that a broker waits for elapses: retention, session timeouts, transaction
        timeouts. Clients keep the machine's time. So a record that a client stamps afterwards is
        old for the broker, unless the topic has `message.timestamp.type=LogAppendTime` or the
        client gives `now_ms()` as the timestamp.

        ZooKeeper keeps the machine's time, too: no broker's session expires, and leaders stay. A
        cluster returns when the replicas that were in sync are in sync again, unless connections
        are cut. A broker that is down gets the new time when it starts.

        Raises KitError: no positive amount, a paused broker, or replicas that stay behind.
        """
        given = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        by_ms = round(sum(amount * _MS[unit] for unit, amount in given.items()))
        if by_ms <= 0:
            raise KitError(f"time only goes forward: advance needs more than 0, not {by_ms} ms")
        self._pass_time(by_ms)
        return self.now_ms()

    def advance_over_locks(self, group: str) -> int:
        """Let so much time pass that the acquisition locks of a share group end
        (`share.record.lock.duration.ms` of the group): records that its members have, and have not
        acknowledged, go to others. Returns the brokers' time, in ms since 1970. Sessions of members
        last longer by default. Raises KitError as `advance`.
        """
        from ottla.testing.share_locks import lock_ms

        return self.advance(seconds=(lock_ms(self.bootstrap, group, self.kit_settings) + 1) / 1_000)

    def _pass_time(self, by_ms: int) -> None:
        """Advance the brokers, and wait until they have done what became due."""
        self._ask_at_once("advance", by_ms=by_ms)
        TimeAhead.of(self.controls()[0].path).add(by_ms)

    def _ask_at_once(self, operation: str, **arguments: Any) -> list[Any]:
        """The results of all brokers. Raises KitError if none runs."""
        sockets = self.controls()
        if not sockets:
            raise KitError(f"no broker runs that could be asked to {operation}")
        ask = partial(ControlSocket.ask, operation=operation, **arguments)
        with ThreadPoolExecutor(len(sockets)) as threads:
            return list(threads.map(ask, sockets))
