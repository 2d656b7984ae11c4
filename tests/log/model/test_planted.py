"""The model of a log finds bugs that are planted in the log's modules."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.log.model.planted import PLANTED, RARE, Patch, first_seed

from ottla.accelerator import PURE_PYTHON

LIVES: Final = 400
MANY: Final = 3_000


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch, fast_folder: Path
) -> None:
    assert first_seed(plant, monkeypatch, LIVES, fast_folder) >= 0


@pytest.mark.full
@pytest.mark.parametrize("plant", RARE, ids=lambda plant: plant.__name__)
def test_a_rare_bug_is_found(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch, fast_folder: Path
) -> None:
    assert first_seed(plant, monkeypatch, MANY, fast_folder) >= 0


def test_bugs_in_compiled_modules_are_found(fast_folder: Path) -> None:
    seeds = _in_compiled(LIVES, fast_folder)
    assert len(seeds) >= 7
    assert "-1" not in seeds.values(), seeds


@pytest.mark.full
def test_a_rare_bug_in_compiled_modules_is_found(fast_folder: Path) -> None:
    seeds = _in_compiled(MANY, fast_folder, "rare")
    assert seeds
    assert "-1" not in seeds.values(), seeds


def _in_compiled(lives: int, folder: Path, *which: str) -> dict[str, str]:
    """The seeds by name, from a process that runs the modules' sources."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.log.model.planted_in_compiled"),
            *(str(lives), str(folder), *which),
        ],
        env={**os.environ, PURE_PYTHON: "1"},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(line.split() for line in done.stdout.splitlines())
