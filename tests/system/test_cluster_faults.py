"""Short runs of `python -m faults`; `make faults` has the long ones."""

from pathlib import Path

import pytest
from faults.anomaly import Kind, Policy
from faults.history import Elected
from faults.run import Plan, run
from faults.schedule import Kind as Faults


@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        (11, (Faults.kill, Faults.lose_disk)),
        # test_cluster_zookeeper has both.
        pytest.param(12, (Faults.pause, Faults.cut_zookeeper), marks=pytest.mark.full),
        (13, (Faults.cut_off, Faults.deposed)),
        pytest.param(15, (Faults.power, Faults.clone), marks=pytest.mark.full),
        pytest.param(14, (Faults.no_zookeeper, Faults.move_replicas), marks=pytest.mark.full),
        pytest.param(16, (Faults.fail_sync,), marks=pytest.mark.full),
    ],
)
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int, kinds: tuple[Faults, ...]) -> None:
    plan = Plan(seed, 5, Policy.strict, tmp_path, kinds=kinds)
    outcome = run(plan, print)
    assert outcome.verdict.anomalies == ()
    assert outcome.numbers["faults"] >= 1
    assert outcome.numbers["acknowledged"] > 500
    assert outcome.numbers["polled by the group"] > 500


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("brokers", "seed", "kinds"),
    [
        (3, 21, (Faults.kill, Faults.pause, Faults.cut_off, Faults.full_disk)),
        (1, 22, (Faults.kill, Faults.pause, Faults.full_disk)),
        (1, 23, (Faults.kill, Faults.fail_sync)),
    ],
)
def test_no_transaction_is_partly_visible(
    tmp_path: Path, brokers: int, seed: int, kinds: tuple[Faults, ...]
) -> None:
    plan = Plan(seed, 15, Policy.strict, tmp_path, brokers=brokers, kinds=kinds, transactions=True)
    outcome = run(plan, print)
    assert outcome.verdict.anomalies == ()
    assert outcome.numbers["faults"] >= len(kinds) - 1
    assert outcome.numbers["transactions committed"] > 50
    assert outcome.numbers["transactions aborted"] > 10
    assert outcome.numbers["polled by the group"] > 500


def test_acks_1_loses_what_only_the_deposed_leader_had_and_no_more(tmp_path: Path) -> None:
    plan = Plan(5, 1, Policy.acks_1, tmp_path, kinds=(Faults.deposed,))
    outcome = run(plan, print)
    assert outcome.verdict.forbidden == ()
    lost = [each for each in outcome.verdict.allowed if each.kind is Kind.lost_write]
    assert lost, "the broker was cut off and killed while it took writes"


def test_an_unclean_election_loses_what_lay_outside_and_no_more(tmp_path: Path) -> None:
    plan = Plan(6, 1, Policy.unclean, tmp_path, kinds=(Faults.last_standing,))
    outcome = run(plan, print)
    assert outcome.verdict.forbidden == ()
    lost = [each for each in outcome.verdict.allowed if each.kind is Kind.lost_write]
    assert lost, "the last in-sync replica was killed with writes that nobody else had"
    assert outcome.count(Elected) > plan.partitions
