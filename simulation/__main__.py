"""`python -m simulation`: many seeds, or one seed's transcript."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from simulation.shrink import shrink
from simulation.transcript import show
from simulation.workers import LostWorkerError, results, workers
from simulation.world import Outcome, end_at_once, run

SEEDS_A_PROCESS = 25
"""Each leaves 10 to 20 MB behind."""
LINE_EVERY = 500
"""Seeds: where no terminal shows the progress, a line says how far a long run is."""


class Mode(NamedTuple):
    """What a run has beside the rest; see `simulation.world.run`."""

    transactions: bool = False
    logs: bool = False
    consumers: bool = False
    conversions: bool = False
    shares: bool = False
    letters: bool = False
    deletions: bool = False
    streams: bool = False


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="number of seeds (200)")
    parser.add_argument("--start", type=int, default=0, help="first seed (0)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--seed", type=int, help="run only this seed; shrink a failure")
    parser.add_argument(
        "--transcript", action="store_true", help="with --seed: print the last lines"
    )
    parser.add_argument(
        "--transactions", action="store_true", help="with transactional clients beside the others"
    )
    parser.add_argument(
        "--logs",
        action="store_true",
        help="with compaction, DeleteRecords, recreated topics, failing syncs and the like",
    )
    parser.add_argument(
        "--consumers",
        action="store_true",
        help="the members of the group speak the consumer protocol (KIP-848)",
    )
    parser.add_argument(
        "--conversions",
        action="store_true",
        help="each member of the group speaks the classic or the consumer protocol",
    )
    parser.add_argument(
        "--shares", action="store_true", help="with the members of a share group (KIP-932)"
    )
    parser.add_argument(
        "--letters", action="store_true", help="with a share group that has dead letters (KIP-1191)"
    )
    parser.add_argument(
        "--deletions",
        action="store_true",
        help="with share groups that are deleted again and again, or whose topic is",
    )
    parser.add_argument(
        "--streams", action="store_true", help="with the members of a streams group (KIP-1071)"
    )
    return parser.parse_args(given)


def one(seed: int, mode: Mode, *, with_transcript: bool, console: Console) -> int:
    """Run one seed; shrink its faults if it fails."""
    outcome = run(seed, **mode._asdict())
    if outcome.violation is not None:
        outcome = shrink(outcome, lambda faults: run(seed, faults, **mode._asdict()))
    if with_transcript or outcome.violation is not None:
        show(console, line_of(outcome), outcome.faults, outcome.transcript)
    else:
        show(console, line_of(outcome))
    return 0 if outcome.violation is None else 1


def many(seeds: Iterable[int], jobs: int, console: Console, mode: Mode | None = None) -> int:
    """Run seeds; the exit code is 0 if all invariants held. Workers restart after some seeds."""
    wanted = list(seeds)
    failed: list[Outcome] = []
    mode = mode or Mode()
    has_shares = mode.shares or mode.letters or mode.deletions
    done = acknowledged = elections = generations = lost = committed = gaps = shared = assigned = 0
    with (
        workers(jobs, SEEDS_A_PROCESS) as pool,
        Progress(console=console) as progress,
    ):
        task = progress.add_task("seeds", total=len(wanted))
        for outcome in results(pool, partial(run, **mode._asdict()), wanted):
            progress.advance(task)
            done += 1
            if not console.is_terminal and done % LINE_EVERY == 0 and done < len(wanted):
                console.print(f"{done:,} of {len(wanted):,} seeds, {len(failed)} failed")
            acknowledged += outcome.acknowledged
            elections += outcome.elections
            generations += outcome.generations
            lost += outcome.lost
            committed += outcome.transactions
            gaps += outcome.gaps
            shared += outcome.shared
            assigned += outcome.assigned
            if outcome.violation is not None:
                failed.append(outcome)
                line = line_of(outcome)
                progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{len(wanted):,} seeds, {len(failed)} failed; {acknowledged:,} records acknowledged, "
        f"{lost:,} batches lost as allowed, {elections:,} elections, {generations:,} generations"
        + (f", {committed:,} transactions" if mode.transactions or mode.logs else "")
        + (f", {gaps:,} gaps read" if mode.logs else "")
        + (f", {shared:,} records accepted in the share group" if has_shares else "")
        + (f", {assigned:,} assignments of tasks" if mode.streams else "")
    )
    if failed:
        first = min(outcome.seed for outcome in failed)
        flags = "".join(f" --{name}" for name, is_on in mode._asdict().items() if is_on)
        console.print(f"Run one: python -m simulation --seed {first}{flags}")
    return 1 if failed else 0


def line_of(outcome: Outcome) -> str:
    """The outcome of a run in one line."""
    held = "held" if outcome.violation is None else f"FAILED: {outcome.violation}"
    return (
        f"seed {outcome.seed}: {held} ({outcome.acknowledged} records acknowledged, "
        f"{outcome.elections} elections, digest {outcome.digest:08x})"
    )


def main() -> int:
    chosen = arguments()
    console = Console()
    mode = Mode(*(getattr(chosen, name) for name in Mode._fields))
    if chosen.seed is not None:
        code = one(
            chosen.seed,
            mode,
            with_transcript=chosen.transcript,
            console=console,
        )
        end_at_once(code)
        return code
    seeds = range(chosen.start, chosen.start + chosen.seeds)
    try:
        return many(seeds, chosen.jobs, console, mode)
    except LostWorkerError as error:
        console.print(str(error), soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
