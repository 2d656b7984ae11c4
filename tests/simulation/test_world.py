"""A thousand seeds; a failing one is shown in full by `python -m simulation --seed N`."""

from __future__ import annotations

import pytest
from simulation.world import run

PART = 50


@pytest.mark.parametrize("first", range(0, 1000, PART))
def test_what_must_always_hold_does(first: int) -> None:
    failed = {
        outcome.seed: outcome.violation
        for outcome in map(run, range(first, first + PART))
        if outcome.violation is not None
    }
    assert not failed


def test_a_seed_happens_again_exactly() -> None:
    assert run(7) == run(7)


def test_clients_get_through() -> None:
    outcomes = [run(seed) for seed in range(5)]
    assert all(outcome.acknowledged > 50 for outcome in outcomes)
    assert any(outcome.elections > 2 for outcome in outcomes)
