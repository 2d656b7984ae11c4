"""The faults of runs with transactions do what they say."""

from __future__ import annotations

from random import Random

import pytest
from simulation.faults import FIRST_MS, LAST_MS, Fault
from simulation.few_epochs import MAX_EPOCH, few_epochs
from simulation.pace import Pace
from simulation.transaction_faults import KINDS, MAX_COUNT, draw_transaction_faults
from simulation.world import run

from ottla.transactions import stored


def test_faults_are_drawn_in_order_and_within_their_time() -> None:
    kinds = set()
    for seed in range(200):
        faults = draw_transaction_faults(Random(seed), 3)
        assert list(faults) == sorted(faults)
        assert len(faults) <= MAX_COUNT
        assert all(FIRST_MS <= each.at_ms < LAST_MS for each in faults)
        kinds |= {each.kind for each in faults}
    assert kinds == set(KINDS)


def test_epochs_are_few_for_a_while() -> None:
    with few_epochs():
        assert stored.is_exhausted(MAX_EPOCH - 1)
    assert not stored.is_exhausted(MAX_EPOCH)


def test_a_broker_that_ended_itself_returns_once_its_disk_has_space() -> None:
    """Also if others had to end themselves first (seed 1000): it ends itself 2 s later."""
    fault = Fault(1_200, "full disk", 2, 1, 300, 0)
    outcome = run(1, [fault], transactions=True, pace=Pace.SWIFT)
    assert outcome.violation is None
    told = [line.split("ms  ")[1] for line in outcome.transcript]
    space = told.index("the disk of 2 has space")
    end = next(n for n, line in enumerate(told) if line.startswith("broker 2 ends itself"))
    assert space < end < told.index("broker 2 starts", end) < told.index("all is healed")


@pytest.mark.full
def test_every_fault_happens_and_does_no_harm() -> None:
    kinds = dict.fromkeys(KINDS)
    faults = [Fault(2_500 + 1_200 * n, kind, 1, 2, 500, n) for n, kind in enumerate(kinds)]
    outcome = run(2, faults, transactions=True, pace=Pace.FULL)
    assert outcome.violation is None
    assert outcome.transactions > 50
    for text in (
        "sends markers and crashes",
        "markers of 10.0.0.",
        "records of 10.0.8.",
        "operator: w with 3 partitions: none",
        "tree: w-2 ",
        "the wall clock of 1 is ",
        "the disk of 1 is full",
        "the disk of 1 has space",
    ):
        assert any(text in line for line in outcome.transcript), text
