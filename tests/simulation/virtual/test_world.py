"""Whole clusters of shipped brokers: seeds hold, repeat exactly, and find planted bugs."""

from __future__ import annotations

import pytest
from simulation.faults import Fault
from simulation.virtual.world import run

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_holds(seed: int) -> None:
    outcome = run(seed)
    assert outcome.violation is None, "\n".join(outcome.transcript)
    assert outcome.acknowledged > 0


def test_a_seed_repeats_exactly() -> None:
    first, second = run(1), run(1)
    assert (first.digest, first.callbacks) == (second.digest, second.callbacks)
    assert first.transcript == second.transcript


def test_a_killed_leader_is_succeeded() -> None:
    fault = Fault(4_000, "crash", 1, 2, 3_000, 0)
    outcome = run(2, [fault])
    assert outcome.violation is None
    assert any("broker1 is killed" in line for line in outcome.transcript)
