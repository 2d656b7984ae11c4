"""A thousand seeds; a failing one is shown in full by `python -m simulation --seed N`."""

from __future__ import annotations

import pytest
from simulation.broker import Broker
from simulation.faults import Fault
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


ONCE: dict[int, str] = {
    538: "consumers read what an empty disk led in the old epoch of its broker",
    546: "an empty disk led in the old epoch of its broker, and the latest offset went back",
    740: "a broker took the answer to an earlier question for deltas",
    96: "a broker that wanted to leave when all was healed never did, and stayed out of sync",
    2197: "an operator gave up what was lost before the controller had heard of it",
    2239: "an unclean leader's high watermark brought back what the ledger had struck out",
    227: "a follower that was cut off joined and was left out in turn",
}


@pytest.mark.parametrize("seed", ONCE)
def test_a_seed_that_failed_once_does_no_more(seed: int) -> None:
    """As long as faults are drawn as they are; what deciders broke is kept in `test_deciders`."""
    assert run(seed).violation is None, ONCE[seed]


def test_who_wants_to_leave_leaves_when_all_is_healed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 96: else the controller counts it as shutting down for ever."""
    faults = (Fault(12358, "leave", 1, 4, 153, 0),)
    assert run(96, faults).violation is None
    monkeypatch.setattr(Broker, "leave", lambda broker: None)
    assert run(96, faults).violation is not None
