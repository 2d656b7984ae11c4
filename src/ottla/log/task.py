"""Long work on a log: created on the event loop's thread, run in a worker thread, applied on the
loop.
"""

from typing import Protocol


class Task(Protocol):
    """One piece of such work. A task that is never applied leaves the log unchanged."""

    def run(self) -> None:
        """The long part, for any thread: files only. Raises ApiError KAFKA_STORAGE_ERROR."""

    def apply(self) -> None:
        """Update the log, on the event loop's thread."""
