"""How a run of pipelines ends: the exit code of its process, which is all that a scheduler sees."""

from __future__ import annotations

from enum import IntEnum


class Ending(IntEnum):
    """The exit code."""

    DONE = 0
    """All have ended by themselves, or were asked to stop: SIGTERM, `ottla pipeline stop`."""
    FAILED = 1
    """One of them failed."""
    REJECTED = 3
    """Each that failed has stopped because most of its first batch is rejected."""
    INTERRUPTED = 130
    """Ctrl-C."""
