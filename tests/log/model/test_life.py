"""The log does what its model says, in lives that seeds choose.

More of them: `python -m tests.log.model FIRST LAST`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.log.model.run import run, shrink

LIVES: Final = 2_000
MANY: Final = 20_000
A_TEST: Final = 50
FOUND: Final = {
    14458: "files of a compaction that could not be removed",
    7942: "a stop completed a cut with a preallocated segment, and left its zeros",
}


def _live(seeds: range, folder: Path) -> None:
    for seed in seeds:
        outcome = run(seed, folder)
        if outcome.violation is not None:
            pytest.fail(str(shrink(outcome, folder)), pytrace=False)


@pytest.mark.parametrize("first", range(0, LIVES, A_TEST))
def test_a_log_is_what_its_model_says(first: int, fast_folder: Path) -> None:
    _live(range(first, first + A_TEST), fast_folder)


@pytest.mark.parametrize("seed", FOUND, ids=FOUND.values())
def test_a_life_that_found_something(seed: int, fast_folder: Path) -> None:
    _live(range(seed, seed + 1), fast_folder)


@pytest.mark.full
@pytest.mark.parametrize("first", range(LIVES, MANY, 10 * A_TEST))
def test_a_log_is_what_its_model_says_in_many_lives(first: int, fast_folder: Path) -> None:
    _live(range(first, first + 10 * A_TEST), fast_folder)
