"""The simulation finds bugs that are planted in the shipped drivers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulation.planted import IN_TRANSACTIONS, PLANTED, Patch, Sighting
from simulation.world import run

MAX_SEEDS = 60


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    runs = (PLANTED[plant], *map(Sighting, range(MAX_SEEDS)))
    assert any(run(each.seed, each.faults).violation is not None for each in runs)


@pytest.mark.full
@pytest.mark.parametrize("plant", IN_TRANSACTIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_transactions_is_found(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    runs = (IN_TRANSACTIONS[plant], *map(Sighting, range(MAX_SEEDS)))
    assert any(
        run(each.seed, each.faults, transactions=True).violation is not None for each in runs
    )
