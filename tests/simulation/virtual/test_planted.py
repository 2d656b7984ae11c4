"""Bugs planted in the shipped drivers are found within some seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulation.virtual.planted import PLANTED, Patch
from simulation.virtual.world import run

MAX_SEEDS = 60


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    seeds = (PLANTED[plant], *range(MAX_SEEDS))
    assert any(run(seed).violation is not None for seed in seeds)
