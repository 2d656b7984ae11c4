"""The steps by name."""

from __future__ import annotations

from typing import Final

from tests.log.model.life import Life, Steps
from tests.log.model.steps.compaction import compact
from tests.log.model.steps.cuts import truncate, truncate_fully
from tests.log.model.steps.flushes import begin_flush, checkpoint, end_flush, flush, roll
from tests.log.model.steps.leadership import commit, role
from tests.log.model.steps.log_start import delete_records, remove_files, retain
from tests.log.model.steps.records import append, end_transactions, expire, send_wrong
from tests.log.model.steps.restarts import kill, lose_power, stop


def look(life: Life) -> None:
    """Check everything."""
    life.look()


STEPS: Final[Steps] = {
    step.__name__: step
    for step in (
        append, begin_flush, checkpoint, commit, compact, delete_records, end_flush,
        end_transactions, expire, flush, kill, look, lose_power, remove_files, retain, role, roll,
        send_wrong, stop, truncate, truncate_fully,
    )
}  # fmt: skip
