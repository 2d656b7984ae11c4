"""Runs one figure with Ottla under Python's profiler, and keeps the functions with most time."""

import io
import pstats
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import OTTLA, Bench, Figure

LINES = 30


def top(files: Sequence[Path], lines: int = LINES) -> str:
    """The functions with the most own time over all brokers, as pstats prints them, with short
    paths.
    """
    out = io.StringIO()
    pstats.Stats(*map(str, files), stream=out).strip_dirs().sort_stats("tottime").print_stats(lines)
    # The first lines name the time and the scratch files.
    printed = out.getvalue().splitlines()[len(files) :]
    return "\n".join(line for line in printed if line.strip())


def profile(figure: Figure, bench: Bench, folder: Path) -> Path:
    """Run a figure once with Ottla under cProfile; return the file with the top lines.

    The clients run without the profiler. It slows the broker down, so only shares are meaningful.
    """
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        raw = str(Path(scratch) / "profile-{broker}")
        prefix = (sys.executable, "-m", "cProfile", "-o", raw, "-m", "ottla")
        small = Bench(bench.jars, bench.rdkafka_performance, True, prefix)
        values = figure.measure(OTTLA, small)
        kept = folder / f"{figure.name}.txt"
        told = ", ".join(f"{name}: {value:.4g}" for name, value in values.items())
        slowest = top(sorted(Path(scratch).iterdir()))
        kept.write_text(f"Under cProfile, a tenth of the load. {told}\n\n{slowest}\n")
    return kept
