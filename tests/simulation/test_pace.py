"""A brisk run has the faults of a full one, in half the time."""

from __future__ import annotations

from random import Random

from simulation.faults import FIRST_MS, MAX_FLAP_MS, Fault, at_pace, draw_faults
from simulation.pace import FULL_SHARE, Pace, pace_of


def test_some_seeds_have_a_full_run() -> None:
    full = sum(pace_of(seed) is Pace.FULL for seed in range(1_000))
    assert 0.7 < full / 1_000 / FULL_SHARE < 1.3
    assert pace_of(17) is pace_of(17)


def test_a_full_run_has_the_faults_as_they_were_drawn() -> None:
    for seed in range(20):
        faults = draw_faults(Random(seed), 3)
        assert at_pace(faults, Pace.FULL) == faults


def test_a_brisk_run_has_them_in_half_the_time() -> None:
    faults = [
        Fault(FIRST_MS + 3_000, "crash", 1, 2, 5_000, 9),
        Fault(FIRST_MS + 1_000, "cut", 2, 3, MAX_FLAP_MS + 2, 8),
    ]
    assert at_pace(faults, Pace.BRISK) == (
        Fault(FIRST_MS + 500, "cut", 2, 3, MAX_FLAP_MS, 8),
        Fault(FIRST_MS + 1_500, "crash", 1, 2, 2_500, 9),
    )


def test_short_faults_stay_as_they_are() -> None:
    flap = Fault(FIRST_MS, "cut", 1, 2, MAX_FLAP_MS - 1, 0)
    assert at_pace([flap], Pace.BRISK) == (flap,)
