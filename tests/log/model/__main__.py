"""`python -m tests.log.model SEED` repeats one life, `... FIRST LAST` runs many."""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from tests.log.model.run import run, shrink

logging.disable()
first, last = int(sys.argv[1]), int(sys.argv[-1])
with tempfile.TemporaryDirectory() as folder:
    failed = 0
    for seed in range(first, last + 1):
        outcome = run(seed, Path(folder))
        if outcome.violation is not None:
            failed += 1
            print(shrink(outcome, Path(folder)))
        elif first == last:
            print(outcome)
    print(f"{failed} of {last + 1 - first} lives failed")
