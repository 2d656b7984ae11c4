"""A failure is reported with only the faults that cause it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from simulation.faults import Fault, draw_faults
from simulation.shrink import shrink


class Outcome(NamedTuple):
    violation: str | None
    faults: tuple[Fault, ...]


def test_only_the_faults_that_cause_the_violation_are_left() -> None:
    faults = next(each for each in (draw_faults(Random(n), 3) for n in range(50)) if len(each) > 8)
    needed = {faults[2], faults[7]}

    def run(tried: tuple[Fault, ...]) -> Outcome:
        return Outcome("both happened" if needed <= set(tried) else None, tried)

    assert set(shrink(run(faults), run).faults) == needed
