"""Whatever happens to a partition, each line of a journey is true, or says that it does not know.

A failing life is repeated by its seed; `life.did` has what happened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.journey.model.life import AbortedLife, RemadeLife, RestartedLife, live

LIVES: Final = 430
REMADE: Final = range(110, 130)
"""Of those with a pipeline whose group is deleted; the deletion of seed 124 was overlooked once."""
ABORTED: Final = 50
FAILED: Final = (
    *(1052, 1055, 1443, 1643, 2100, 3110, 3413, 3518, 3571, 3759, 4286, 4534, 5415, 5456, 5637),
    *(
        5659,
        5760,
        5938,
        6295,
        6583,
        7633,
        8131,
        12028,
        12416,
        12567,
        12580,
        12691,
        12694,
        13241,
        14760,
    ),
    *(9259, 9993),
    *(14837, 14910, 15098, 15107, 15219, 15316, 15792, 16103, 16390, 16844),
    *(11063, 11408, 11473, 18609, 18628, 18784, 19144, 13700, 13713),
)
"""Lives in which a journey once said what is not true."""
AT_ONCE: Final = 50
MORE: Final = 20_000


@pytest.mark.parametrize("first", range(0, LIVES, AT_ONCE))
def test_a_journey_says_nothing_untrue(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        live(seed, tmp_path)


@pytest.mark.parametrize("seed", FAILED)
def test_what_was_untrue_once(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)


def test_a_pipeline_whose_group_was_made_again(tmp_path: Path) -> None:
    for seed in REMADE:
        live(seed, tmp_path, RemadeLife)


@pytest.mark.parametrize("first", range(0, ABORTED, AT_ONCE))
def test_a_pipeline_does_not_read_what_is_aborted(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        live(seed, tmp_path, AbortedLife)


@pytest.mark.full
@pytest.mark.parametrize("first", range(ABORTED, 2000, 250))
def test_a_pipeline_does_not_read_what_is_aborted_in_more_lives(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + 250, 2000)):
        live(seed, tmp_path, AbortedLife)


@pytest.mark.parametrize("first", range(100, 150, AT_ONCE))
def test_a_query_that_began_again_with_another_checkpoint(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        live(seed, tmp_path, RestartedLife)


def test_a_delivery_of_what_two_crashes_took(tmp_path: Path) -> None:
    """The log lost its end, and the steps before and between both crashes are lost, too."""
    live(988, tmp_path, RestartedLife)


def test_a_first_batch_that_began_behind_the_message(tmp_path: Path) -> None:
    """Its commit was the first one of its checkpoint, and was taken for the message's batch."""
    live(223, tmp_path, RestartedLife)


@pytest.mark.full
@pytest.mark.parametrize("first", range(150, 2150, 250))
def test_a_query_that_began_again_in_more_lives(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 250):
        live(seed, tmp_path, RestartedLife)


@pytest.mark.full
def test_more_pipelines_whose_groups_were_made_again(tmp_path: Path) -> None:
    for seed in range(1000):
        live(seed, tmp_path, RemadeLife)


@pytest.mark.full
@pytest.mark.parametrize("first", range(LIVES, MORE, 500))
def test_a_journey_says_nothing_untrue_in_more_lives(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + 500, MORE)):
        live(seed, tmp_path)
