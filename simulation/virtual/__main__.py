"""`python -m simulation.virtual`: many seeds, or one seed's transcript."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.progress import Progress

from simulation.shrink import shrink
from simulation.transcript import show
from simulation.virtual.world import Outcome, run

SEEDS_A_PROCESS = 100


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m simulation.virtual", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--start", type=int, default=0, help="the first (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--seed", type=int, help="only this one; if it fails, with fewer faults")
    parser.add_argument("--transcript", action="store_true", help="with --seed: its last lines")
    return parser.parse_args(given)


def one(seed: int, *, with_transcript: bool, console: Console) -> int:
    """Run one seed; a failure is shrunk."""
    outcome = run(seed)
    if outcome.violation is not None:
        outcome = shrink(outcome, lambda faults: run(seed, faults))
    if with_transcript or outcome.violation is not None:
        show(console, line_of(outcome), outcome.faults, outcome.transcript)
    else:
        show(console, line_of(outcome))
    return 0 if outcome.violation is None else 1


def many(seeds: Iterable[int], jobs: int, console: Console) -> int:
    """Run seeds; the exit code says whether all held. Workers end after some seeds."""
    wanted = list(seeds)
    failed: list[Outcome] = []
    acknowledged = elections = 0
    context = multiprocessing.get_context("spawn")
    with (
        context.Pool(jobs, maxtasksperchild=SEEDS_A_PROCESS) as pool,
        Progress(console=console) as progress,
    ):
        task = progress.add_task("seeds", total=len(wanted))
        for outcome in pool.imap_unordered(run, wanted):
            progress.advance(task)
            acknowledged += outcome.acknowledged
            elections += outcome.elections
            if outcome.violation is not None:
                failed.append(outcome)
                progress.console.print(line_of(outcome), markup=False, highlight=False)
    console.print(
        f"{len(wanted):,} seeds, {len(failed)} failed; {acknowledged:,} records acknowledged, "
        f"{elections:,} elections"
    )
    if failed:
        first = min(outcome.seed for outcome in failed)
        console.print(f"See one: python -m simulation.virtual --seed {first}")
    return 1 if failed else 0


def line_of(outcome: Outcome) -> str:
    """A run in one line."""
    held = "held" if outcome.violation is None else f"FAILED: {outcome.violation}"
    return (
        f"seed {outcome.seed}: {held} ({outcome.acknowledged} records acknowledged, "
        f"{outcome.elections} elections, digest {outcome.digest:08x})"
    )


def main() -> int:
    chosen = arguments()
    console = Console()
    if chosen.seed is not None:
        return one(chosen.seed, with_transcript=chosen.transcript, console=console)
    return many(range(chosen.start, chosen.start + chosen.seeds), chosen.jobs, console)


if __name__ == "__main__":
    sys.exit(main())
