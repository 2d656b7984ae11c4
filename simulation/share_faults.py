"""Faults that only runs with a share group have: the wall clock of a broker jumps.

Locks do not go by it, and what does must not wait until it has caught up.
"""

from __future__ import annotations

from random import Random
from typing import Final

from simulation.faults import FIRST_MS, LAST_MS, Fault

KINDS: Final = ("jump clock",)
MAX_COUNT: Final = 2


def draw_share_faults(random: Random, brokers: int) -> tuple[Fault, ...]:
    """In order of time; see `simulation.faults`."""
    faults = []
    for _ in range(random.randrange(MAX_COUNT + 1)):
        one, other = random.sample(range(1, brokers + 1), 2)
        at_ms, ms = random.randrange(FIRST_MS, LAST_MS), random.randrange(20, 4_000)
        faults.append(Fault(at_ms, random.choice(KINDS), one, other, ms, random.randrange(1 << 30)))
    return tuple(sorted(faults))
