"""Each fault of runs with a streams group happens, and the group has all its tasks again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from multiprocessing.pool import Pool

import pytest
from simulation.faults import Fault
from simulation.pace import Pace
from simulation.workers import workers
from simulation.world import Outcome, run

CASES = (
    ("delete internal", 3, "operator: delete app-", 1),
    ("delete source", 0, "tree: /brokers/topics/in created", 2),
    ("new application", 0, "operator: group app deleted: none", 1),
    ("cut process", 0, "FAULT cut process", 1),
    ("replace threads", 0, "FAULT replace threads", 1),
    ("stop process", 0, "FAULT stop process", 1),
    ("replace process", 0, "FAULT replace process", 1),
    ("kill who asks", 0, "has asked for a description", 1),
    ("standbys", 0, "FAULT standbys", 1),
    ("add partition", 0, "operator: t with ", 1),
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers(1, 4) as pool:
        yield pool


def with_one(kind: str, chance: int) -> list[Outcome]:
    """In two seeds, of which one may have fewer partitions or replicas."""
    fault = Fault(1_500, kind, 1, 2, 300, chance)
    return [run(seed, [fault], streams=True, pace=Pace.SWIFT) for seed in (1, 2)]


@pytest.mark.parametrize(("kind", "chance", "line", "count"), CASES)
def test_a_fault_happens_and_does_no_harm(
    kind: str, chance: int, line: str, count: int, pool: Pool
) -> None:
    outcomes = pool.apply(partial(with_one, kind, chance))
    assert [each.violation for each in outcomes] == [None, None]
    assert all(each.assigned for each in outcomes)
    said = [sum(line in one for one in each.transcript) for each in outcomes]
    assert max(said) >= count
