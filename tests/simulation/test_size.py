"""A full run has all clients, a smaller one few of each kind."""

from __future__ import annotations

from simulation.pace import Pace
from simulation.size import LARGEST, size_of


def test_a_full_run_has_all_clients() -> None:
    for transactions in (False, True):
        assert size_of(3, Pace.FULL, transactions=transactions) == LARGEST


def test_a_smaller_run_has_no_more_and_at_least_one_of_each_kind() -> None:
    for seed in range(100):
        size = size_of(seed, Pace.SWIFT, transactions=False)
        assert all(0 < few <= many for few, many in zip(size[:3], LARGEST[:3], strict=True))


def test_the_transactional_ids_of_a_smaller_run_differ() -> None:
    drawn = {size_of(seed, Pace.BRISK, transactions=True)[3:] for seed in range(100)}
    assert drawn == {(1, 0), (2, 0), (0, 1), (0, 2), (1, 1)}
    assert size_of(17, Pace.BRISK, transactions=True) == size_of(17, Pace.BRISK, transactions=True)


def test_a_run_with_faults_of_logs_has_a_writer() -> None:
    for seed in range(50):
        for transactions in (True, False):
            for pace in Pace:
                size = size_of(seed, pace, transactions=transactions, logs=True)
                assert size.writers >= 1
                assert transactions or not size.transfers
