"""A simulated process: one start of a broker or client.

Every callback belongs to the process that was current when it was scheduled: asyncio keeps a copy
of the context with each callback, and the process is a context variable.
"""

from __future__ import annotations

from asyncio import Task
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final


class Handle:
    """A callback of a process: what the loop's `call_soon` and `call_at` return.

    It has the methods of `asyncio.TimerHandle`, which takes twice as long to make.
    """

    __slots__ = ("args", "callback", "context", "is_cancelled", "process", "when_s")

    def __init__(
        self,
        when_s: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
        process: Process,
    ) -> None:
        self.when_s = when_s
        self.callback = callback
        self.args = args
        self.context = context
        self.process = process
        self.is_cancelled = False

    def when(self) -> float:
        return self.when_s

    def cancelled(self) -> bool:
        return self.is_cancelled

    def cancel(self) -> None:
        """The loop drops it when it is due; it holds nothing until then."""
        self.is_cancelled = True
        self.callback, self.args = _nothing, ()


def _nothing() -> None:
    """The callback of a cancelled handle."""


class Process:
    """Runs its callbacks one by one, in the order in which they became due."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.ready: deque[Handle] = deque()
        self.tasks: dict[Task[Any], None] = {}
        self.is_alive = True
        self.is_paused = False
        self.context: Context = copy_context()
        self.context.run(CURRENT.set, self)

    def kill(self) -> None:
        """SIGKILL: no more callbacks run, and no `finally` either."""
        self.is_alive = False
        self.ready.clear()

    def __repr__(self) -> str:
        return f"<process of {self.host}>"


CURRENT: Final[ContextVar[Process]] = ContextVar("process")
