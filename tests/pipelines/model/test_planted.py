"""Walks through a world find bugs that are planted in the pipelines."""

from __future__ import annotations

from typing import Final

import pytest
from tests.pipelines.model.planted import PLANTED, Plant, first_seed
from tests.pipelines.model.world import install

SEEDS: Final = 700


@pytest.mark.parametrize(
    ("kind", "plant"), PLANTED, ids=[f"{plant.__name__}-{kind}" for kind, plant in PLANTED]
)
def test_a_planted_bug_is_found(kind: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert first_seed(plant, monkeypatch, kind, SEEDS) >= 0
