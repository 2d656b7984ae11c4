"""Prints one run: its outcome, its faults and the last lines of its transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from simulation.faults import Fault

MAX_LINES: Final = 80


def show(
    console: Console, line: str, faults: Sequence[Fault] = (), transcript: Sequence[str] = ()
) -> None:
    """Print the line, the faults and the transcript verbatim: none of it is markup."""
    console.print(line, markup=False, highlight=False)
    for fault in faults:
        console.print(f"{fault.at_ms:6} ms  {fault}", markup=False, highlight=False)
    if transcript:
        console.print("...")
    for each in transcript[-MAX_LINES:]:
        console.print(each, markup=False, highlight=False, soft_wrap=True)
