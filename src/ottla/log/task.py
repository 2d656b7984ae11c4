"""Work on a log that takes long: made on the loop's thread, run in a worker's, applied on the
loop's again."""

from typing import Protocol


class Task(Protocol):
    """One piece of such work. A task that is never applied leaves the log as it was."""

    def run(self) -> None:
        """The long part, for any thread: files only. Raises ApiError KAFKA_STORAGE_ERROR."""

    def apply(self) -> None:
        """What it means for the log, on the loop's thread."""
