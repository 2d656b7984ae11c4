"""When the open transaction is committed.

While the mirror is behind, a transaction lasts as long as MAX_S, so that its fixed cost is shared
by many records. Once it has caught up, what it has read is committed at once: a reader of committed
records sees nothing before. Each transaction writes a marker into each of its partitions and an
entry of the offset map, so there is a pause between two of them, longer the more partitions they
have: MIN_PAUSE_S and MAX_MARKERS_PER_S are what the target bears, however small the transactions.
"""

from __future__ import annotations

from typing import Final

MAX_S: Final = 0.5
MIN_PAUSE_S: Final = 0.02
MAX_MARKERS_PER_S: Final = 1_000


class CommitTimes:
    """For one loop. Times are of any clock, in seconds. `every_s`: the time of one transaction;
    None as above.
    """

    def __init__(self, every_s: float | None) -> None:
        self._every_s = MAX_S if every_s is None else every_s
        self._is_fixed = every_s is not None
        self._due_s = 0.0
        self._pause_ends_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Whether it is time, caught up or not."""
        return now_s >= self._due_s

    def may_commit_early(self, now_s: float) -> bool:
        """Whether a mirror that has caught up commits now."""
        return not self._is_fixed and now_s >= self._pause_ends_s

    def note_begun(self, now_s: float) -> None:
        """The first record was added to a transaction."""
        self._due_s = now_s + self._every_s

    def note_looked(self, now_s: float) -> None:
        """It was time; there may have been nothing to commit."""
        self._due_s = now_s + self._every_s

    def note_committed(self, now_s: float, partitions: int) -> None:
        """A transaction with so many partitions has ended."""
        self._pause_ends_s = now_s + max(MIN_PAUSE_S, partitions / MAX_MARKERS_PER_S)

    def wait_s(self, now_s: float, most_s: float) -> float:
        """How long a mirror with an open transaction may wait for more records."""
        # After the pause only more records, or the due time, change anything.
        is_pausing = not self._is_fixed and now_s < self._pause_ends_s
        end_s = min(self._due_s, self._pause_ends_s) if is_pausing else self._due_s
        return min(most_s, max(0.0, end_s - now_s))
