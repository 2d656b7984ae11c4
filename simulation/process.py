"""A process that crashes and pauses, and its session with the coordination tree.

Inside a process nothing runs while it is paused: what arrives waits, and is done late, when others
have long given it up. A crash loses all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ottla.coordination.tree import ConnectionLostError, CoordinationError, Event, Watch
from simulation.network import Network
from simulation.schedule import Action, Schedule
from simulation.tree import Tree

ZOOKEEPER = 0
"""The ensemble's host number, for cuts."""
SESSION_MS = 3000
_LOST_AFTER_MS = 700

Call = Callable[[Tree, int], Any]
Steps = Generator[Call | int, Any, None]
"""Yields what to do on the tree, and is sent its result or has its error raised; or yields for how
many milliseconds to wait.
"""


class Process:
    """One host's process, through its incarnations."""

    def __init__(self, number: int, schedule: Schedule, network: Network, tree: Tree) -> None:
        self.number = number
        self.incarnation = 0
        self.is_up = False
        self.is_paused = False
        self.session = 0
        self.schedule = schedule
        self.network = network
        self.tree = tree
        self._backlog: list[Action] = []
        self._silence = 0
        self._sent_ms = 0
        self._answered_ms = 0

    def begin(self) -> None:
        """A new process starts."""
        assert not self.is_up
        self.incarnation += 1
        self.is_up = True
        self.is_paused = False
        self._backlog.clear()

    def end(self) -> None:
        """It dies; its session runs out by itself."""
        self.hear_nothing()
        self.is_up = False
        self.is_paused = False
        self.incarnation += 1
        self._backlog.clear()

    def pause(self) -> None:
        """SIGSTOP."""
        self.is_paused = True
        self.hear_nothing()

    def resume(self) -> None:
        """SIGCONT: all that waited happens now, in order."""
        self.is_paused = False
        self.hear_again()
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            self.after(0, action)

    def enter(self, action: Action) -> None:
        """Do it now, or when the pause is over."""
        if not self.is_up:
            return
        if self.is_paused:
            self._backlog.append(action)
        else:
            action()

    def after(self, delay_ms: int, action: Action) -> None:
        """A timer of this incarnation."""
        incarnation = self.incarnation

        def fire() -> None:
            if self.incarnation == incarnation:
                self.enter(action)

        self.schedule.after(delay_ms, fire)

    # The session.

    @property
    def reaches_tree(self) -> bool:
        """False while cut off from the ensemble."""
        return frozenset((self.number, ZOOKEEPER)) not in self.network.cuts

    def connect(self) -> None:
        """A new session; the one before ends as an unheard one does."""
        self.session = self.tree.connect()
        self._silence += 1
        if not self.reaches_tree:
            self.hear_nothing()

    def hear_nothing(self) -> None:
        """The ensemble hears no more of this process: its session will end."""
        self._silence += 1
        silence, session = self._silence, self.session
        # It was last heard of up to a third of the session ago.
        delay_ms = SESSION_MS - self.schedule.random.randrange(SESSION_MS // 3)

        def expire() -> None:
            if self._silence == silence or self.session != session:
                self.tree.expire(session)

        if session:
            self.schedule.after(delay_ms, expire)

    def hear_again(self) -> None:
        """Pings arrive again, if nothing else keeps them back."""
        if self.is_up and not self.is_paused and self.reaches_tree:
            self._silence += 1

    def call(self, what: Call, answered: Callable[[Any], None]) -> None:
        """Does `what` on the tree, and calls `answered` with its result or CoordinationError.

        ConnectionLostError: whether it was done is unknown, and here it is left to chance.
        """
        random = self.schedule.random
        session, incarnation = self.session, self.incarnation
        broken = random.random() < self.network.loss / 2
        self._sent_ms = max(self._sent_ms, self.schedule.now_ms + self._delay_ms())

        def answer(result: Any, delay_ms: int) -> None:
            def arrive() -> None:
                if self.incarnation == incarnation:
                    self.enter(lambda: answered(result))

            self._answered_ms = max(self._answered_ms, self.schedule.now_ms + delay_ms)
            self.schedule.after(self._answered_ms - self.schedule.now_ms, arrive)

        def arrive() -> None:
            if not self.reaches_tree or (broken and random.random() < 0.5):
                answer(ConnectionLostError("connection lost"), _LOST_AFTER_MS)
                return
            result: Any
            try:
                result = what(self.tree, session)
            except CoordinationError as error:
                result = error
            if broken:
                answer(ConnectionLostError("connection lost"), _LOST_AFTER_MS)
            else:
                answer(result, self._delay_ms())

        self.schedule.after(self._sent_ms - self.schedule.now_ms, arrive)

    def watch(self, told: Callable[[Event], None]) -> Watch:
        """A watch whose event reaches this incarnation after a while."""
        incarnation = self.incarnation

        def fire(event: Event) -> None:
            def arrive() -> None:
                if self.incarnation == incarnation:
                    self.enter(lambda: told(event))

            self._answered_ms = max(self._answered_ms, self.schedule.now_ms + self._delay_ms())
            self.schedule.after(self._answered_ms - self.schedule.now_ms, arrive)

        return fire

    def spawn(self, steps: Steps) -> None:
        """Runs steps, one call to the tree after another. Errors that they let out are bugs."""

        def go_on(result: Any) -> None:
            try:
                if isinstance(result, CoordinationError):
                    call = steps.throw(result)
                else:
                    call = steps.send(result)
            except StopIteration:
                return
            if isinstance(call, int):
                self.after(call, lambda: go_on(None))
            else:
                self.call(call, go_on)

        go_on(None)

    def _delay_ms(self) -> int:
        return self.schedule.random.randrange(1, 5)
