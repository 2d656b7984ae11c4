"""What the console has seen of the cluster while it ran: lags of groups, ends of topics. In memory.

Every series has one number for each sample, so the memory is bounded: `MAX_SAMPLES` numbers for
each of `MAX_SERIES` groups, as many topics, and the few groups whose pages are open. More have no
history: those with the worst lag and the most records are added first. Pure but for its lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from threading import Lock
from typing import Final, NamedTuple

MAX_SAMPLES: Final = 720
"""Two hours, if one is taken every 10 s."""
MAX_SERIES: Final = 1000
UNKNOWN: Final = -1
LEAST_GROWING: Final = 4
"""Samples: a group that reads in batches is behind for a moment."""
TREND_SAMPLES: Final = 6
"""A trend is that of the last minute: of one sample it would flicker."""


Numbers = list[int | None]


class Trend(NamedTuple):
    """How a number changes: by so many `per_s`, over `over_s`."""

    per_s: float
    over_s: float


class Series:
    """The newest numbers, one for each sample; UNKNOWN where there is none."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def at(self, samples: int, number: int) -> None:
        """The number of the newest of so many samples."""
        missing = samples - 1 - len(self._numbers)
        self._numbers.extend([UNKNOWN] * max(0, missing))
        self._numbers.append(number)

    def drop(self, count: int) -> None:
        del self._numbers[:count]

    def numbers(self, samples: int) -> list[int | None]:
        """One for each sample."""
        known: list[int | None] = [None if each == UNKNOWN else each for each in self._numbers]
        return known + [None] * (samples - len(known))


class History:
    """Use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._times = array("q")
        self._by_kind: dict[str, dict[str, Series]] = {}

    def add(self, at_ms: int, numbers: Mapping[str, Mapping[str, int]]) -> None:
        """One sample: the numbers of each kind, by name."""
        with self._lock:
            if len(self._times) >= MAX_SAMPLES:
                self._drop(MAX_SAMPLES // 10)
            self._times.append(at_ms)
            count = len(self._times)
            for kind, given in numbers.items():
                known = self._by_kind.setdefault(kind, {})
                for name, number in given.items():
                    if name not in known and len(known) >= MAX_SERIES:
                        continue
                    known.setdefault(name, Series()).at(count, number)

    def _drop(self, count: int) -> None:
        """Forget the oldest samples, and the series that have no other."""
        del self._times[:count]
        for series in self._by_kind.values():
            for name in [*series]:
                series[name].drop(count)
                if not series[name].numbers(0):
                    del series[name]

    def read(self, kind: str, name: str) -> tuple[list[int], Numbers]:
        """Times (ms since 1970) and numbers, the oldest first."""
        times, (numbers,) = self.read_kinds([kind], name)
        return times, numbers

    def read_kinds(self, kinds: Iterable[str], name: str) -> tuple[list[int], list[Numbers]]:
        """The same, of several kinds."""
        with self._lock:
            times = self._times.tolist()
            known = [self._by_kind.get(kind, {}).get(name) for kind in kinds]
            return times, [
                [None] * len(times) if each is None else each.numbers(len(times)) for each in known
            ]

    def trend(self, kind: str, name: str) -> Trend | None:
        """Of the last minute; None if less than two samples of it are known."""
        return trend_of(*self.read(kind, name))


def trend_of(times: list[int], numbers: list[int | None]) -> Trend | None:
    """Pure: from the first to the last known of the newest samples."""
    known = [
        (at_ms, number)
        for at_ms, number in zip(times[-TREND_SAMPLES:], numbers[-TREND_SAMPLES:], strict=True)
        if number is not None
    ]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None
    over_s = (known[-1][0] - known[0][0]) / 1000
    return Trend((known[-1][1] - known[0][1]) / over_s, over_s)


def is_growing(numbers: Sequence[int | None]) -> bool:
    """Pure: whether it has grown in the last minute, and not fallen meanwhile."""
    known = [each for each in numbers[-TREND_SAMPLES:] if each is not None]
    if len(known) < LEAST_GROWING or known[-1] <= known[0]:
        return False
    return all(before <= after for before, after in pairwise(known))


def rates(times: list[int], numbers: list[int | None]) -> list[float | None]:
    """A second, between each sample and the one before; None where it is not known or less than
    none: a topic that was made again. Pure.
    """
    found: list[float | None] = [None] * len(times)
    for at in range(1, len(times)):
        before, now, ms = numbers[at - 1], numbers[at], times[at] - times[at - 1]
        if before is not None and now is not None and ms > 0 and now >= before:
            found[at] = (now - before) * 1000 / ms
    return found
