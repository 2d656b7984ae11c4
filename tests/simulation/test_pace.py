"""A brisk run has the faults of a full one in half the time, a swift run in a quarter of it."""

from __future__ import annotations

from collections import Counter
from random import Random

from simulation.faults import FIRST_MS, MAX_FLAP_MS, MIN_FIRST_MS, Fault, at_pace, draw_faults
from simulation.pace import BRISK_SHARE, FULL_SHARE, Pace, pace_of


def test_some_seeds_have_a_full_run_and_some_a_brisk_one() -> None:
    paces = Counter(map(pace_of, range(10_000)))
    assert 0.8 < paces[Pace.FULL] / 10_000 / FULL_SHARE < 1.2
    assert 0.8 < paces[Pace.BRISK] / 10_000 / BRISK_SHARE < 1.2
    assert pace_of(17) is pace_of(17)


def test_a_full_run_has_the_faults_as_they_were_drawn() -> None:
    for seed in range(20):
        faults = draw_faults(Random(seed), 3)
        assert at_pace(faults, Pace.FULL) == faults


def test_other_runs_have_them_in_less_time() -> None:
    faults = [
        Fault(FIRST_MS + 4_000, "crash", 1, 2, 6_000, 9),
        Fault(FIRST_MS + 1_000, "cut", 2, 3, MAX_FLAP_MS + 2, 8),
    ]
    assert at_pace(faults, Pace.BRISK) == (
        Fault(MIN_FIRST_MS + 500, "cut", 2, 3, MAX_FLAP_MS, 8),
        Fault(MIN_FIRST_MS + 2_000, "crash", 1, 2, 3_000, 9),
    )
    assert at_pace(faults, Pace.SWIFT) == (
        Fault(MIN_FIRST_MS + 250, "cut", 2, 3, MAX_FLAP_MS, 8),
        Fault(MIN_FIRST_MS + 1_000, "crash", 1, 2, 1_500, 9),
    )


def test_short_faults_stay_as_they_are() -> None:
    flap = Fault(FIRST_MS, "cut", 1, 2, MAX_FLAP_MS - 1, 0)
    assert at_pace([flap], Pace.SWIFT) == (flap._replace(at_ms=MIN_FIRST_MS),)
