"""Steps that wait to be taken: what all of a partition's timelines share.

Limits: at most `MAX_STEPS` wait; beyond that the newest are not noted, and are counted.
"""

from typing import Final

from ottla.journey.step import Step, Versions

WINDOW_MS: Final = 100
BACKLOG_STEPS: Final = 512
"""For each so many steps that wait to be taken, windows are one `WINDOW_MS` longer."""
MAX_STEPS: Final = 4096
"""Steps waiting to be taken; the driver is far behind when there are more, and the newest are not
noted.
"""
MAX_TRACKS: Final = 64
"""Groups and pipelines, and replicas, remembered for each partition; a forgotten one's next step
says so.
"""


class Track:
    """A group's, pipeline's or replica's number and its open step (`closes_ms` 0: none is open)."""

    __slots__ = (
        "before",
        "closes_ms",
        "first",
        "position",
        "since_ms",
        "unknown",
        "until_ms",
        "versions",
    )

    def __init__(self) -> None:
        self.position: int | None = None
        self.since_ms = self.until_ms = self.closes_ms = 0
        self.before = self.first = 0
        self.unknown = False
        self.versions: Versions | None = None


class Gathering:
    """The steps that are over. `dirty` is shared with the driver: who has steps adds itself."""

    __slots__ = ("_closed", "_dirty", "unnoted")

    def __init__(self, dirty: "dict[Gathering, None]") -> None:
        self.unnoted = 0
        """Steps that found no room because nobody took the others."""
        self._dirty = dirty
        self._closed: list[Step] = []

    def _window_ms(self) -> int:
        """Wider where the driver does not keep up: then bounds are wider, and nothing is lost."""
        return WINDOW_MS * (1 + len(self._closed) // BACKLOG_STEPS)

    def _add(self, step: Step) -> None:
        if len(self._closed) >= MAX_STEPS:
            self.unnoted += 1
            return
        self._closed.append(step)
        self._dirty[self] = None
