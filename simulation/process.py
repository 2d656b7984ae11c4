"""A simulated process: one start of a broker or client.

Every callback belongs to the process that was current when it was scheduled: asyncio keeps a copy
of the context with each callback, and the process is a context variable.
"""

from __future__ import annotations

from asyncio import Handle, Task
from collections import deque
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final


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
