"""Runs one seed, in a folder that is removed afterwards, and shortens what fails."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.log.model.life import Life
from tests.log.model.plan import Step, plan
from tests.log.model.steps.table import STEPS
from tests.log.model.violation import Violation

MAX_RUNS: Final = 150
"""To shorten one life."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a life ended. `violation` is None if the log was always what the model says."""

    seed: int
    steps: Sequence[Step]
    violation: str | None
    transcript: Sequence[str]

    def __str__(self) -> str:
        return "\n".join(
            (
                *self.transcript,
                f"seed {self.seed}: {self.violation or 'nothing wrong'}",
                f"again: python -m tests.log.model {self.seed}",
            )
        )


def run(seed: int, folder: Path, steps: Sequence[Step] | None = None) -> Outcome:
    """The life of this seed, or only `steps` of it. `folder` must exist."""
    chosen = plan(seed) if steps is None else steps
    home = Path(tempfile.mkdtemp(dir=folder))
    life = Life(seed, home, STEPS)
    violation: str | None = None
    try:
        life.run(chosen)
    except Violation as error:
        violation = str(error)
    except Exception:  # noqa: BLE001 - whatever the log raises that it must not
        violation = traceback.format_exc()
    finally:
        life.broker.kill()
        shutil.rmtree(home)
    return Outcome(seed, chosen, violation, life.transcript)


def shrink(outcome: Outcome, folder: Path) -> Outcome:
    """The same seed with fewer steps, and still a violation."""
    best, runs, size = outcome, 0, max(1, len(outcome.steps) // 2)
    while runs < MAX_RUNS:
        for start in range(0, len(best.steps), size):
            tried = run(best.seed, folder, [*best.steps[:start], *best.steps[start + size :]])
            runs += 1
            if tried.violation is not None:
                best = tried
                break
        else:
            if size == 1:
                break
            size //= 2
    return best
