"""Whole clusters of shipped brokers: seeds pass, and repeat exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.faults import Fault
from simulation.pace import Pace
from simulation.world import Outcome, run

ROOT = Path(__file__).parents[2]
SEEDS = 200
PART = 50
"""In one process: its imports cost as much as some seeds."""


@pytest.mark.parametrize("first", range(0, SEEDS, PART))
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


def test_the_invariants_hold_in_a_group_of_the_consumer_protocol() -> None:
    """No partition has two owners, the group converges, and a coordinator's memory is its log."""
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "--consumers", "--seeds", "30", "--jobs", "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 seeds, 0 failed" in done.stdout


CUT_OFF = (
    Fault(2104, "depose", 1, 2, 6026, 275982232),
    Fault(3303, "cut", 3, 2, 5868, 423007218),
    Fault(4588, "stall tree", 1, 2, 335, 186894418),
    Fault(7817, "expire", 2, 1, 209, 386367645),
    Fault(8687, "cut tree", 1, 2, 6027, 603686542),
    Fault(9431, "pause", 3, 2, 5829, 703169894),
)
FOUND = (
    (604, None),
    (717, CUT_OFF),
    (1517, None),
    # Their lessons are in tests of the checker.
    pytest.param(717, None, marks=pytest.mark.full),
    pytest.param(1193, None, marks=pytest.mark.full),
)
"""Seeds that were not held, each with its faults if these are not the drawn ones.

- A request that nobody continued held the controller's lock.
- A coordinator that had been replaced told a member its old generation, as Kafka's does: the
  checker has to allow that.
- A leader that had been replaced uncleanly acknowledged a record, as Kafka's does.
- An unclean leader brought back a record that was older than the committed one.
- A static leader came back with JoinGroup 5, so nobody noticed a new partition (KIP-814).
"""


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
FOUND_AT_OWN_PACE = (
    (182, False, None),
    (100089, False, NEW_PARTITION),
    (100176, False, None),
    (101276, False, STOPPED_STARTING),
    (103221, False, LATE_CUT),
    (111856, False, None),
    (125720, False, None),
    (147089, False, None),
    (167257, False, None),
    (171516, False, None),
    (190210, False, None),
    (300034, True, LATE_FAILURE),
    (301266, True, None),
    (302341, True, None),
    (306294, True, None),
    (307409, True, None),
    (310812, True, None),
    (323772, True, None),
    (325154, True, None),
    (334968, True, None),
    (335381, True, None),
    (347596, True, None),
    (351567, True, None),
    (353142, True, None),
    (359080, True, None),
    (369755, True, None),
)
"""The same for runs at the pace of the seed, with and without transactions. All were faults of the
simulation.

- A coordinator that did not know a new partition refused its offset alone: the member took it as
  committed.
- The last checks began while a broker was starting, or stopping.
- A broker that was told to stop while it started, and could not start.
- A cut that belongs to a stalled proposal began after all was healed.
- A member with old metadata asked a leader that had been replaced and was behind, got
  OFFSET_OUT_OF_RANGE and began at 0 (KIP-320; two seeds).
- A former controller wrote to a partition whose topic the next one had deleted, and the stall of
  writes looked for its state.
- A member that was paused heard of a generation of the group that had been removed meanwhile.
- A member was killed while a commit of it had no response, and the history did not have it.
- A coordinator of transactions had lost its last records, and gave up markers of an epoch that was
  over (two seeds).
- Two batches were sent again at once, the second one found the new leader first, and its refusal
  for its sequence was not expected.
- The first of two batches came before the new leader was elected and the second one after it, which
  is accepted of a producer that the partition does not know; the first one is then out of order
  (three seeds, one with a new partition).
- A leader that had been paused committed records by a fetch from before a power failure, in which
  the follower lost them (two seeds).
- A broker that did not know that others led its partitions found a producer fenced: its coordinator
  was one of them, and knew only an old epoch (three seeds).
- A leader that was started again had only the last batch of a producer, from the snapshot, and the
  one before it was out of order when it was sent again.
- A broker that ended itself during the last checks, for a write to the disk that had been full (two
  seeds).
- The coordinator lost a generation, and the leader of the group came back to the one before it as a
  static member (KIP-814). The assignment of that one did not have a new partition.
- All brokers lost commits of the group in a power failure, and a journey rightly said that the
  group was set back.
"""


@pytest.mark.parametrize(("seed", "transactions", "faults"), FOUND_AT_OWN_PACE)
def test_a_seed_that_found_something_at_its_own_pace(
    seed: int, transactions: bool, faults: tuple[Fault, ...] | None
) -> None:
    assert run(seed, faults, transactions=transactions).violation is None


FOUND_IN_LOGS = (
    (40, False),
    (13, True),
    (500100, False),
    (500372, False),
    (510244, False),
    (510828, False),
    (511169, False),
    (511423, False),
)
"""The same for faults of logs, with and without transactions.

- A power failure took the last batch of a segment and left the next segment: the log had a hole,
  which recovery did not see.
- The simulation did not see such a hole either, and expected the records behind it.
- A power failure took all records after the log start: the broker says so, and may.
- A reader was polled by the last checks while its own poll was under way.
- DeleteRecords began the log inside of an open transaction. A leader that was elected before it
  knew that start had an earlier last stable offset, as Kafka's: the checker has to allow that.
- The checker took an empty segment above a gap for part of the log after its truncation.
- A leader that had been emptied at a log start inside a transaction did not know that transaction.
- The checker expected deleted records of a broker that a power failure had stopped.
"""


@pytest.mark.parametrize(("seed", "transactions"), FOUND_IN_LOGS)
def test_a_seed_that_found_something_in_logs(seed: int, transactions: bool) -> None:
    assert run(seed, logs=True, transactions=transactions).violation is None


OF_LOGS = 200
OF_LOGS_PART = 50


@pytest.mark.parametrize("flags", [["--logs"], ["--logs", "--transactions"]], ids=" ".join)
@pytest.mark.parametrize(
    ("first", "count"),
    [
        (0, 8),
        *(
            pytest.param(first, OF_LOGS_PART, marks=pytest.mark.full)
            for first in range(8, OF_LOGS, OF_LOGS_PART)
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
