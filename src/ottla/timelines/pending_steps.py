"""Steps that wait to be taken: common to all of a partition's timelines.

Limits: at most `MAX_STEPS` wait. After that, new steps are dropped and counted.
"""

from typing import Final

from ottla.timelines.rejected_offsets import RejectedOffsets
from ottla.timelines.step import By, Step, Versions

WINDOW_MS: Final = 100
BACKLOG_STEPS: Final = 512
"""For each of this many waiting steps, windows become one `WINDOW_MS` longer."""
MAX_STEPS: Final = 4096
"""Limit for waiting steps. If the recorder is so far behind, new steps are dropped.
"""
MAX_TRACKS: Final = 64
"""Groups and pipelines, and replicas, remembered per partition. The next step of a forgotten
pipeline or replica says that its start is unknown; of groups, commits say what they replace.
"""


class Track:
    """A group's, pipeline's or replica's number and its open step (`closes_ms` 0: none is open).

    `told`: the batch and rejected offsets that a pipeline's last commit named; it repeats them
    while it renews its state. `committed`: the offset that the group has committed, even if the log
    ended before it.
    """

    __slots__ = (
        "before",
        "by",
        "closes_ms",
        "committed",
        "first",
        "has_rejects",
        "is_first",
        "position",
        "since_ms",
        "told",
        "unknown",
        "until_ms",
        "versions",
    )

    def __init__(self) -> None:
        self.position: int | None = None
        self.since_ms = self.until_ms = self.closes_ms = 0
        self.before = self.first = 0
        self.unknown = self.has_rejects = False
        self.versions: Versions | None = None
        self.by = By.UNKNOWN
        self.is_first = False
        self.committed = -1
        self.told: tuple[int, RejectedOffsets | None] | None = None


class Gathering:
    """The finished steps. `dirty` is shared with the recorder: an object with steps adds itself."""

    __slots__ = ("_closed", "_dirty", "unnoted")

    def __init__(self, dirty: "dict[Gathering, None]") -> None:
        self.unnoted = 0
        """Steps that were dropped because too many were waiting."""
        self._dirty = dirty
        self._closed: list[Step] = []

    def _window_ms(self) -> int:
        """Longer if the recorder cannot keep up: bounds become wider, but nothing is lost."""
        return WINDOW_MS * (1 + len(self._closed) // BACKLOG_STEPS)

    def _add(self, step: Step) -> None:
        if len(self._closed) >= MAX_STEPS:
            self.unnoted += 1
            return
        self._closed.append(step)
        self._dirty[self] = None
