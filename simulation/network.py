"""The network between brokers and clients: late, lost, out of order, cut.

A request and its answer are two messages, each with its own delay, so two requests may arrive in
another order than they were sent in. A cut loses what is sent and what is on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from simulation.schedule import Schedule

Reply = Callable[[Any], None]


class Host(Protocol):
    """A process that may be asked."""

    number: int

    def handle(self, request: Any, reply: Reply) -> None:
        """Take a request; `reply` may be called later."""

    def enter(self, action: Callable[[], None]) -> None:
        """Do this inside the process: later if it is paused, never if it is dead."""

    @property
    def incarnation(self) -> int:
        """Grows with each start; messages to a former one are lost."""

    @property
    def is_up(self) -> bool:
        """False when there is no process at all: it refuses connections."""


class Network:
    """Carries messages between hosts. Host numbers below 0 are clients."""

    def __init__(self, schedule: Schedule) -> None:
        self.hosts: dict[int, Host] = {}
        self.cuts: set[frozenset[int]] = set()
        self.loss = 0.0
        """The part of messages that get lost."""
        self._schedule = schedule

    def delay_ms(self) -> int:
        """How long one message is on its way: mostly short, sometimes very long."""
        random = self._schedule.random
        if random.random() < 0.02:
            return random.randrange(50, 900)
        return random.randrange(1, 8)

    def ask(
        self,
        source: Host,
        target: int,
        request: Any,
        timeout_ms: int,
        answered: Reply,
        *,
        held_up_ms: int = 0,
    ) -> None:
        """Calls `answered` once, inside the source: with the answer, or None when none came.

        `held_up_ms` is how much later than others the request arrives.
        """
        done = [False]
        incarnation = source.incarnation

        def finish(answer: Any) -> None:
            if not done[0]:
                done[0] = True
                answered(answer)

        def give_up() -> None:
            if not done[0] and source.incarnation == incarnation:
                source.enter(lambda: finish(None))

        # A closed timer stays on the schedule: it is cheap, and finds its request answered.
        self._schedule.after(timeout_ms, give_up)
        host = self.hosts[target]

        def arrive() -> None:
            if not host.is_up:
                self._carry(target, source, lambda: finish(None))
            else:
                host.enter(lambda: host.handle(request, reply))

        def reply(answer: Any) -> None:
            # An answer to a former life's question finds its connection closed.
            if source.incarnation == incarnation:
                self._carry(target, source, lambda: finish(answer))

        if held_up_ms:
            self._schedule.after(held_up_ms, lambda: self._send(source.number, target, arrive))
        else:
            self._send(source.number, target, arrive)

    def probe(self, source: Host, target: int, refused: Callable[[], None]) -> None:
        """Calls `refused` inside the source if there is no process at the target. A paused one has
        a listener all the same; a cut network tells nothing.
        """

        def arrive() -> None:
            if not self.hosts[target].is_up:
                self._carry(target, source, refused)

        self._send(source.number, target, arrive)

    def _carry(self, origin: int, to: Host, action: Callable[[], None]) -> None:
        incarnation = to.incarnation

        def arrive() -> None:
            if to.incarnation == incarnation:
                to.enter(action)

        self._send(origin, to.number, arrive)

    def _send(self, origin: int, to: int, arrive: Callable[[], None]) -> None:
        link = frozenset((origin, to))
        if link in self.cuts or (self.loss and self._schedule.random.random() < self.loss):
            return

        def unless_cut() -> None:
            if link not in self.cuts:
                arrive()

        self._schedule.after(self.delay_ms(), unless_cut)
