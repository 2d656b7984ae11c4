"""A failing seed's list of faults made as short as it can be in a bounded number of runs."""

from __future__ import annotations

from simulation.deciders import Deciders
from simulation.world import Outcome, run

_RUNS_MOST = 80


def shrink(outcome: Outcome, deciders: Deciders | None = None) -> Outcome:
    """The same seed with fewer faults, still with a violation; at worst `outcome` itself."""
    assert outcome.violation is not None
    best, runs, size = outcome, 0, max(1, len(outcome.faults) // 2)
    while runs < _RUNS_MOST:
        for start in range(0, len(best.faults), size):
            fewer = best.faults[:start] + best.faults[start + size :]
            tried = run(outcome.seed, fewer, deciders)
            runs += 1
            if tried.violation is not None:
                best = tried
                break
        else:
            if size == 1:
                break
            size //= 2
    return best
