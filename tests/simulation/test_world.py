"""Whole clusters of shipped brokers: seeds pass, and repeat exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from simulation.faults import Fault
from simulation.pace import Pace
from simulation.world import Outcome, run

ROOT = Path(__file__).parents[2]
PART = 50
"""In one process: its imports cost as much as some seeds."""


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(each, marks=pytest.mark.full) for each in (50, 100, 150))]
)
def test_the_invariants_hold(first: int) -> None:
    """`python -m simulation --seed N` shows a failing seed in full.

    The seeds run in their own process, because files of killed brokers stay open until its end.
    """
    seeds = ["--start", str(first), "--seeds", str(PART), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", *seeds],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PART} seeds, 0 failed" in done.stdout


@pytest.mark.parametrize("first", [0, pytest.param(15, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "mode", ["--consumers", "--conversions", "--shares", "--letters", "--deletions", "--streams"]
)
def test_the_invariants_hold_in_a_group_of_the_consumer_protocol(mode: str, first: int) -> None:
    """No partition has two owners, the group converges, and a coordinator's memory is its log; also
    where members speak either protocol. In a share group no record is lost, and none that was
    accepted comes again. In a streams group no task has two owners, and all are
    assigned at the end.
    """
    program = (sys.executable, "-m", "simulation")
    done = subprocess.run(
        [*program, mode, "--start", str(first), "--seeds", "15", "--jobs", "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 seeds, 0 failed" in done.stdout


def kept(why: str, *values: Any, is_full: bool = False) -> Any:
    """A seed that stays, with what it has found as the name of its test."""
    found = values if len(values) > 1 else (*values, None)
    return pytest.param(
        *found, marks=[pytest.mark.full] if is_full else [], id=f"{values[0]}: {why}"
    )


CUT_OFF = (
    Fault(2104, "depose", 1, 2, 6026, 275982232),
    Fault(3303, "cut", 3, 2, 5868, 423007218),
    Fault(4588, "stall tree", 1, 2, 335, 186894418),
    Fault(7817, "expire", 2, 1, 209, 386367645),
    Fault(8687, "cut tree", 1, 2, 6027, 603686542),
    Fault(9431, "pause", 3, 2, 5829, 703169894),
)
FOUND: Final = (
    kept("a request that nobody continued held the controller's lock", 604),
    kept("a replaced coordinator tells a member its old generation, as Kafka's", 717, CUT_OFF),
    kept("a static leader came back with JoinGroup 5 and saw no new partition (KIP-814)", 1517),
    # Their lessons are in tests of the checker.
    kept("a leader that was replaced uncleanly acknowledged, as Kafka's", 717, is_full=True),
    kept("an unclean leader brought back an older record", 1193, is_full=True),
)
"""Seeds that were not held, at the full pace."""


@pytest.mark.parametrize(("seed", "faults"), FOUND)
def test_a_seed_that_found_something(seed: int, faults: tuple[Fault, ...] | None) -> None:
    assert run(seed, faults, pace=Pace.FULL).violation is None


NEW_PARTITION = (
    Fault(1119, "cut", 3, 4, 1657, 1025435084),
    Fault(1219, "add partition", 2, 4, 158, 325465031),
)
STOPPED_STARTING = (
    Fault(921, "lose disk", 3, 2, 400, 353009126),
    Fault(1238, "lose disk", 1, 2, 392, 710697196),
    Fault(1328, "leave", 3, 1, 1116, 195193842),
    Fault(1345, "crash", 2, 1, 822, 595838777),
    Fault(1347, "cut tree", 3, 2, 1091, 242666161),
    Fault(2091, "reassign", 2, 3, 449, 132750888),
)
LATE_FAILURE = (
    Fault(1159, "pause", 4, 3, 359, 871064116),
    Fault(1336, "preferred", 4, 2, 1132, 653566291),
    Fault(1860, "slow markers", 2, 4, 845, 339605623),
    Fault(2784, "full disk at markers", 2, 3, 400, 617268066),
)
LATE_CUT = (
    Fault(815, "stall join", 2, 3, 30, 558848433),
    Fault(2283, "stall join", 1, 3, 29, 877036470),
    Fault(3226, "expire", 3, 4, 259, 5228882),
    Fault(3232, "add partition", 2, 4, 222, 652058093),
)
FOUND_AT_OWN_PACE: Final = (
    kept(
        "all brokers lost commits of a group, and a journey said that it was set back",
        182,
        False,
        None,
    ),
    kept(
        "a member took an offset that a coordinator without a new partition refused as committed",
        100089,
        False,
        NEW_PARTITION,
    ),
    kept("the last checks began while a broker was starting or stopping", 100176, False, None),
    kept(
        "a broker that was told to stop while it started could not start",
        101276,
        False,
        STOPPED_STARTING,
    ),
    kept("a cut of a stalled proposal began after all was healed", 103221, False, LATE_CUT),
    kept(
        "a member with old metadata asked a leader that was behind, and began at 0 (KIP-320)",
        111856,
        False,
        None,
    ),
    kept(
        "a member with old metadata asked a leader that was behind (KIP-320)",
        125720,
        False,
        None,
    ),
    kept("a former controller wrote to a partition of a deleted topic", 147089, False, None),
    kept("a paused member heard of a generation of a removed group", 167257, False, None),
    kept("a member was killed while a commit of it was under way", 171516, False, None),
    kept("the last checks asked a broker for the controller while it stopped", 190210, False, None),
    kept("a disk that had been full at markers failed after the end", 300034, True, LATE_FAILURE),
    kept(
        "a coordinator that lost its last records gave up markers of an old epoch",
        301266,
        True,
        None,
    ),
    kept(
        "a coordinator that lost its last records gave up markers of an old epoch, again",
        302341,
        True,
        None,
    ),
    kept(
        "the second of two batches found the new leader first and was refused", 306294, True, None
    ),
    kept(
        "a broker with a disk that had been full ended itself during the last checks",
        307409,
        True,
        None,
    ),
    kept("a cut-off broker that did not know its successors fenced a producer", 310812, True, None),
    kept(
        "a new leader that did not know the producer accepted the second batch first",
        323772,
        True,
        None,
    ),
    kept(
        "a new leader that did not know the producer accepted the second batch first, again",
        325154,
        True,
        None,
    ),
    kept("a paused leader counted a fetch from before a power failure", 334968, True, None),
    kept("a paused leader counted a fetch from before a power failure, again", 335381, True, None),
    kept(
        "a static leader of a lost generation took the partitions of a later one (KIP-814)",
        347596,
        True,
        None,
    ),
    kept(
        "a restarted leader knew only the last batch of a producer, from the snapshot",
        351567,
        True,
        None,
    ),
    kept(
        "a leader that was yet to learn it asked itself as the coordinator that it had been",
        353142,
        True,
        None,
    ),
    kept(
        "a leader that was yet to learn it asked itself as the coordinator, again",
        359080,
        True,
        None,
    ),
    kept("the second batch was accepted on a new partition before the first", 369755, True, None),
)
"""The same for runs at the pace of the seed, with and without transactions. All were faults of the
simulation or its checker.
"""


@pytest.mark.parametrize(("seed", "transactions", "faults"), FOUND_AT_OWN_PACE)
def test_a_seed_that_found_something_at_its_own_pace(
    seed: int, transactions: bool, faults: tuple[Fault, ...] | None
) -> None:
    assert run(seed, faults, transactions=transactions).violation is None


FOUND_IN_LOGS: Final = (
    kept("a power failure left a hole in the log, which recovery did not see", 40, False),
    kept("the simulation did not see such a hole, and expected the records behind it", 13, True),
    kept("a power failure took all records after the log start: the broker says so", 500100, False),
    kept("a reader was polled by the last checks while its own poll was under way", 500372, False),
    kept(
        "DeleteRecords began the log inside of a transaction, which a new leader did not know",
        510244,
        False,
    ),
    kept("the checker took an empty segment above a gap for part of the log", 510828, False),
    kept("the checker expected deleted records of a broker that was down", 511169, False),
    kept(
        "a leader that was emptied at a log start did not know the transaction around it",
        511423,
        False,
    ),
)
"""The same for faults of logs, with and without transactions."""


@pytest.mark.parametrize(("seed", "transactions"), FOUND_IN_LOGS)
def test_a_seed_that_found_something_in_logs(seed: int, transactions: bool) -> None:
    assert run(seed, logs=True, transactions=transactions).violation is None


OF_LOGS = 200
OF_LOGS_PART = 50


@pytest.mark.parametrize("flags", [["--logs"], ["--logs", "--transactions"]], ids=" ".join)
@pytest.mark.parametrize(
    ("first", "count"),
    [
        (0, 4),
        *(
            pytest.param(first, OF_LOGS_PART, marks=pytest.mark.full)
            for first in range(4, OF_LOGS, OF_LOGS_PART)
        ),
    ],
)
def test_the_invariants_hold_with_faults_of_logs(first: int, count: int, flags: list[str]) -> None:
    """`python -m simulation --logs --seed N` shows a failing seed in full."""
    seeds = [*flags, "--start", str(first), "--seeds", str(count), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", *seeds],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} seeds, 0 failed" in done.stdout


TRANSACTIONAL = 100
TRANSACTIONAL_PART = 25


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (0, 2),
        *(
            pytest.param(first, TRANSACTIONAL_PART, marks=pytest.mark.full)
            for first in range(2, TRANSACTIONAL, TRANSACTIONAL_PART)
        ),
    ],
)
def test_the_invariants_hold_with_transactions(first: int, count: int) -> None:
    """`python -m simulation --transactions --seed N` shows a failing seed in full."""
    seeds = ["--transactions", "--start", str(first), "--seeds", str(count), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", *seeds],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} seeds, 0 failed" in done.stdout


@pytest.mark.parametrize(
    "flag",
    [
        "",
        pytest.param(", transactions=True", marks=pytest.mark.full),
        pytest.param(", logs=True", marks=pytest.mark.full),
    ],
)
def test_a_seed_repeats_exactly_in_any_process(flag: str) -> None:
    """Neither the order of sets nor memory addresses may influence a run."""
    code = f"from simulation.world import run;print(run(1{flag}).digest, run(2{flag}).digest)"
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=environment,
            timeout=240,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_one_seed_runs_from_the_command_line() -> None:
    """At its end nothing of the killed brokers runs any more, which would print errors."""
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "--seed", "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "seed 1: held" in done.stdout


def with_one(kind: str, *, seed: int = 2, ms: int = 3_000, chance: int = 0) -> Outcome:
    """A run in which only this fault happens, to broker 1."""
    outcome = run(seed, [Fault(4_000, kind, 1, 2, ms, chance)], pace=Pace.FULL)
    assert outcome.violation is None
    return outcome


def says(outcome: Outcome, text: str) -> bool:
    return any(text in line for line in outcome.transcript)


def test_a_killed_leader_is_replaced() -> None:
    outcome = with_one("crash")
    assert says(outcome, "broker 1 is killed")
    assert outcome.elections > 2
    assert outcome.acknowledged > 100


def test_a_killed_member_is_replaced_in_another_generation() -> None:
    outcome = with_one("kill member")
    assert says(outcome, "of the group is killed")
    assert outcome.generations > 1


def test_an_added_partition_gets_records() -> None:
    outcome = with_one("add partition", seed=1)
    assert says(outcome, "partitions: none")
    assert says(outcome, "tree: t-1 ")


def test_a_rolling_restart_restarts_every_broker_once() -> None:
    outcome = with_one("roll")
    left = [line for line in outcome.transcript if line.endswith(" leaves")]
    assert len(left) == len({line.split("ms  ")[1] for line in left}) >= 3


def test_a_drained_broker_has_no_replicas() -> None:
    outcome = with_one("drain", seed=0)
    assert says(outcome, "operator: t to") or says(outcome, "cannot be drained")


@pytest.mark.parametrize("chance", [0, 1])
def test_a_stalled_proposal_to_join_the_isr_does_no_harm(chance: int) -> None:
    assert any(
        says(with_one("stall join", seed=seed, chance=chance), "is stalled") for seed in range(6)
    )


def test_a_write_of_a_deposed_controller_is_fenced() -> None:
    outcome = with_one("stall tree")
    assert says(outcome, "to the tree is stalled")


FOUND_IN_CONVERSIONS: Final = (
    kept("an empty group began its numbers again in the other protocol", 173),
    kept("an answer was of a life of the group between two others", 399),
    kept("a member that had left committed late as an administrator", 256),
    kept("a deposed controller did not know it while its write was stalled", 865),
    kept("an unclean leader brought back the record that was acknowledged first", 965),
    kept("a topic was deleted by a request from a cut connection, after another was refused", 1395),
)
"""The checkers were wrong, not the brokers."""


@pytest.mark.parametrize(("seed", "faults"), FOUND_IN_CONVERSIONS)
def test_a_seed_that_found_something_in_conversions(
    seed: int, faults: tuple[Fault, ...] | None
) -> None:
    assert run(seed, faults, conversions=True).violation is None


@pytest.mark.parametrize(
    "seed", [pytest.param(2004, id="2004: an active task becomes a standby task in one step")]
)
def test_a_seed_that_found_something_in_streams_groups(seed: int) -> None:
    """The checker was wrong: a member may have both while it gives the active one up."""
    assert run(seed, streams=True).violation is None


@pytest.mark.parametrize(
    "seed", [pytest.param(1559, id="1559: a crash took what a follower noted of another record")]
)
def test_a_seed_that_found_something_in_share_groups(seed: int) -> None:
    """The journey told when the former record of the offset was copied."""
    assert run(seed, shares=True).violation is None
