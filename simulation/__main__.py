"""`python -m simulation`: many seeds, or one seed's transcript."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from simulation.shrink import shrink
from simulation.transcript import show
from simulation.world import Outcome, run


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--start", type=int, default=0, help="the first (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--seed", type=int, help="only this one, and what became of it")
    parser.add_argument("--transcript", action="store_true", help="with --seed: its last lines")
    return parser.parse_args(given)


def one(seed: int, *, with_transcript: bool, console: Console) -> int:
    """Run one seed; a failure is shrunk."""
    outcome = run(seed)
    if outcome.violation is not None:
        outcome = shrink(outcome, lambda faults: run(seed, faults))
    if with_transcript or outcome.violation is not None:
        show(console, _line(outcome), outcome.faults, outcome.transcript)
    else:
        show(console, _line(outcome))
    return 0 if outcome.violation is None else 1


def many(seeds: Iterable[int], jobs: int, console: Console) -> int:
    """Run seeds; the exit code says whether all held."""
    wanted = list(seeds)
    failed: list[Outcome] = []
    steps = acknowledged = lost = elections = 0
    with ProcessPoolExecutor(jobs) as pool, Progress(console=console) as progress:
        task = progress.add_task("seeds", total=len(wanted))
        for outcome in pool.map(run, wanted, chunksize=10):
            progress.advance(task)
            steps += outcome.steps
            acknowledged += outcome.acknowledged
            lost += outcome.lost
            elections += outcome.elections
            if outcome.violation is not None:
                failed.append(outcome)
                # At once: who ends a long run early has what it found.
                progress.console.print(
                    _line(outcome), markup=False, highlight=False, soft_wrap=True
                )
    table = Table("seeds", "failed", "steps", "acknowledged", "leader epochs", "lost as allowed")
    table.add_row(*map(str, (len(wanted), len(failed), steps, acknowledged, elections, lost)))
    console.print(table)
    if failed:
        console.print(f"see: python -m simulation --seed {failed[0].seed} --transcript")
    return 1 if failed else 0


def _line(outcome: Outcome) -> str:
    return f"seed {outcome.seed}: {outcome.violation or 'all held'}"


def main() -> int:
    """The exit code."""
    given, console = arguments(), Console()
    if given.seed is not None:
        return one(given.seed, with_transcript=given.transcript, console=console)
    return many(range(given.start, given.start + given.seeds), given.jobs, console)


if __name__ == "__main__":
    sys.exit(main())
