"""Walks through a world find bugs that are planted in the pipelines."""

from __future__ import annotations

from typing import Final

import pytest
from tests.pipelines.model.planted import PLANTED, Plant, first_seed
from tests.pipelines.model.world import install

SEEDS: Final = 4_000


@pytest.mark.parametrize(
    ("kind", "plant", "delivery"),
    PLANTED,
    ids=[f"{plant.__name__}-{kind}-{delivery}" for kind, plant, delivery in PLANTED],
)
def test_a_planted_bug_is_found(
    kind: str, plant: Plant, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    assert first_seed(plant, monkeypatch, kind, delivery, SEEDS) >= 0
