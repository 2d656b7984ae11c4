"""The simulation finds bugs that are planted in the shipped drivers.

The bugs run in another process: files of simulated brokers that were killed stay open until the end
of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.pool import Pool

import pytest
from simulation.planted import (
    IN_TRANSACTIONS,
    PLANTED,
    Patch,
    Sighting,
    divergence_is_ignored,
)
from simulation.planted_consumers import PLANTED_CONSUMERS
from simulation.planted_conversions import PLANTED_CONVERSIONS
from simulation.planted_logs import PLANTED_LOGS
from simulation.planted_shares import PLANTED_DELETIONS, PLANTED_LETTERS, PLANTED_SHARES
from simulation.planted_streams import PLANTED_STREAMS
from simulation.traps import TRAPS
from simulation.workers import workers
from simulation.world import run

MAX_SEEDS = 60
MAX_SEEDS_OF_LOGS = 24
OF_TRANSACTIONS = IN_TRANSACTIONS | TRAPS
BUGS_A_PROCESS = 8
LONG = {divergence_is_ignored}
"""Its followers ask for the same again and again, as those of follower_keeps_its_tail do."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers(1, BUGS_A_PROCESS) as pool:
        yield pool


def _is_found(plant: Callable[[Patch], None], first: Sighting, **mode: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        runs = (first, *map(Sighting, range(MAX_SEEDS)))
        return any(
            run(each.seed, each.faults, pace=each.pace, **mode).violation is not None
            for each in runs
        )


@pytest.mark.parametrize(
    "plant",
    [pytest.param(plant, marks=pytest.mark.full if plant in LONG else ()) for plant in PLANTED],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED[plant], transactions=False))


@pytest.mark.full
@pytest.mark.parametrize("plant", OF_TRANSACTIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_transactions_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, OF_TRANSACTIONS[plant], transactions=True))


@pytest.mark.parametrize("plant", PLANTED_CONSUMERS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_consumer_groups_is_found(
    plant: Callable[[Patch], None], pool: Pool
) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_CONSUMERS[plant], consumers=True))


@pytest.mark.parametrize("plant", PLANTED_CONVERSIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_conversions_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_CONVERSIONS[plant], conversions=True))


@pytest.mark.parametrize("plant", PLANTED_SHARES, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_share_groups_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_SHARES[plant], shares=True))


@pytest.mark.parametrize("plant", PLANTED_LETTERS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_dead_letters_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_LETTERS[plant], letters=True))


@pytest.mark.parametrize("plant", PLANTED_DELETIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_deletions_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_DELETIONS[plant], deletions=True))


@pytest.mark.parametrize("plant", PLANTED_STREAMS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_streams_groups_is_found(
    plant: Callable[[Patch], None], pool: Pool
) -> None:
    assert pool.apply(partial(_is_found, plant, PLANTED_STREAMS[plant], streams=True))


def _is_found_in_logs(plant: Callable[[Patch], None], first: Sighting) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert first.faults is not None
        runs = (
            (first.seed, first.faults),
            *((seed, first.faults) for seed in range(MAX_SEEDS_OF_LOGS)),
        )
        return any(
            run(
                seed, [each._replace(seed=seed) for each in faults], logs=True, pace=first.pace
            ).violation
            is not None
            for seed, faults in runs
        )


@pytest.mark.parametrize("plant", PLANTED_LOGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_logs_is_found(plant: Callable[[Patch], None], pool: Pool) -> None:
    assert pool.apply(partial(_is_found_in_logs, plant, PLANTED_LOGS[plant]))
