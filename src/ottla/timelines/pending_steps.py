"""Steps that wait to be taken: common to all of a partition's timelines.

Limits: at most `MAX_STEPS` wait. After that, new steps are dropped and counted.
"""

from typing import Final

from ottla.timelines.rejected_offsets import MAX_SPAN, RejectedOffsets
from ottla.timelines.step import By, Kind, Step, Versions

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
    while it renews its state. `last`: its checkpoint, batch and version (None: not known).
    `checkpoint`: that of the open step. `committed`: the offset that the group has committed, even
    if the log ended before it.
    """

    __slots__ = (
        "before",
        "by",
        "checkpoint",
        "closes_ms",
        "committed",
        "first",
        "has_rejects",
        "is_first",
        "last",
        "position",
        "reads_committed",
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
        self.unknown = self.has_rejects = self.reads_committed = False
        self.versions: Versions | None = None
        self.by = By.UNKNOWN
        self.is_first = False
        self.committed = -1
        self.checkpoint = 0
        self.last: tuple[int, int, int] | None = None
        self.told: tuple[int, RejectedOffsets | None] | None = None


def clock_set_back(now_ms: int, latest_ms: int) -> list[Step]:
    """What says that the clock is at `now_ms` and was at `latest_ms`: two steps if they are further
    apart than one may span.
    """
    ends = (latest_ms,) if latest_ms - now_ms <= MAX_SPAN else (now_ms, latest_ms)
    return [Step(Kind.CLOCK, None, now_ms if end == ends[0] else end, end, 0, 0, 0) for end in ends]


class Gathering:
    """The finished steps. `dirty` is shared with the recorder: an object with steps adds itself."""

    __slots__ = ("_closed", "_dirty", "_latest_ms", "unnoted")

    def __init__(self, dirty: "dict[Gathering, None]") -> None:
        self.unnoted = 0
        """Steps that were dropped because too many were waiting."""
        self._dirty = dirty
        self._closed: list[Step] = []
        self._latest_ms = 0

    def _window_ms(self) -> int:
        """Longer if the recorder cannot keep up: bounds become wider, but nothing is lost."""
        return WINDOW_MS * (1 + len(self._closed) // BACKLOG_STEPS)

    def _note_time(self, now_ms: int, until_ms: int = 0) -> None:
        """A step begins now, and the one before it ended at `until_ms`. Times before and after the
        clock was set back have no order.
        """
        latest_ms = max(self._latest_ms, until_ms)
        self._latest_ms = now_ms
        if now_ms < latest_ms:
            for step in clock_set_back(now_ms, max(latest_ms, self._latest_until_ms())):
                self._add(step)

    def _latest_until_ms(self) -> int:
        """The largest time in open steps."""
        return 0

    def _add(self, step: Step) -> None:
        if len(self._closed) >= MAX_STEPS:
            self.unnoted += 1
            return
        self._closed.append(step)
        self._dirty[self] = None
