"""Random lives find untruths that are planted in the journey."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.journey.model.planted import PLANTED, Plant, first_seed

SEEDS: Final = 600


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_untruth_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert first_seed(plant, monkeypatch, SEEDS, tmp_path) >= 0
