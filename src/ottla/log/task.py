"""Long work on a log: created on the event loop's thread, run in a worker thread, applied on the
loop.
"""

from typing import Protocol

from ottla.runtime.waiting import Watcher


class Task(Protocol):
    """One piece of such work. A task that is never applied leaves the log unchanged."""

    def run(self) -> None:
        """The long part, for any thread: files only. Raises ApiError KAFKA_STORAGE_ERROR."""

    def apply(self) -> None:
        """Update the log, on the event loop's thread."""


class Rebuild(Task, Protocol):
    """The rebuild of a segment's indexes, for which look-ups wait; see `index_rebuild`."""

    waiters: dict[Watcher, None] | None
    is_over: bool
    """Whether or not it has helped: look again."""

    def end(self) -> None:
        """Called in any case, on the event loop's thread."""
