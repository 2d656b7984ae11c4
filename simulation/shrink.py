"""Shortens the list of faults of a failing run, in a bounded number of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from simulation.faults import Fault

MAX_RUNS: Final = 80


class Failed(Protocol):
    """The outcome of a run with these faults."""

    @property
    def violation(self) -> str | None:
        """None if all invariants held."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """In order of time."""


T = TypeVar("T", bound=Failed)


def shrink(outcome: T, run: Callable[[tuple[Fault, ...]], T]) -> T:
    """The same seed with fewer faults and still a violation; `outcome` itself if none is found."""
    assert outcome.violation is not None
    best, runs, size = outcome, 0, max(1, len(outcome.faults) // 2)
    while runs < MAX_RUNS:
        for start in range(0, len(best.faults), size):
            tried = run(best.faults[:start] + best.faults[start + size :])
            runs += 1
            if tried.violation is not None:
                best = tried
                break
        else:
            if size == 1:
                break
            size //= 2
    return best
