"""Whether the next batch of a history is expected to be in order. Pure.

A batch in order is merged by a shorter statement (`in_order_statement`), which fails for a late
record: the batch is then merged again by the longer one. Records of a key mostly come in order. If
they do not, the shorter statement is not tried for some batches, after each failure for twice as
many.
"""

from __future__ import annotations

from typing import Final

MAX_BATCHES_BETWEEN: Final = 32
"""A stream whose batches are always late tries in vain once in 33 batches, in the long run."""


class BatchOrder:
    """What one query's batches have shown so far."""

    def __init__(self) -> None:
        self._next_wait = 1
        self._waits = 0
        """So many batches are merged by the longer statement without a try."""

    def expects_order(self) -> bool:
        """Tell whether to try the shorter statement; called once for each batch."""
        if self._waits:
            self._waits -= 1
            return False
        return True

    def was_in_order(self) -> None:
        """The shorter statement merged the batch."""
        self._next_wait = 1

    def was_late(self) -> None:
        """The batch had a late record."""
        self._waits = self._next_wait
        self._next_wait = min(2 * self._next_wait, MAX_BATCHES_BETWEEN)
