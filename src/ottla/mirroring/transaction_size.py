"""How large a transaction may be: as much as the link to the target carries in part of its time.

A transaction that the target has not acknowledged in time is aborted, and read again; if it had the
same size again, a mirror over a slow link would never get on. So it begins with FIRST_BYTES, which
0.25 MB/s carry, grows while transactions end quickly, and shrinks where they take long or come too
late, by what was acknowledged of them.
"""

from __future__ import annotations

from typing import Final

MAX_RECORDS: Final = 200_000
MAX_PARTITIONS: Final = 5_000
"""The marker of a transaction commits the positions of all of them at once, which takes time; a
target that is Ottla has a limit of 10,000.
"""
MAX_BYTES: Final = 128_000_000
MIN_BYTES: Final = 64_000
FIRST_BYTES: Final = 4_000_000
GROWTH: Final = 4
QUICK_S: Final = 2.0
"""So that one of GROWTH times the size still has time left."""
LONG_S: Final = 10.0
"""About half of what a transaction has."""


class TransactionSize:
    """For one writer. Times are in seconds."""

    def __init__(self) -> None:
        self.limit_bytes = FIRST_BYTES

    def is_full(self, records: int, size_bytes: int, partitions: int) -> bool:
        return (
            records >= MAX_RECORDS or size_bytes >= self.limit_bytes or partitions >= MAX_PARTITIONS
        )

    def note_committed(self, size_bytes: int, took_s: float) -> None:
        """A transaction of this size has been committed, so long after its first record."""
        if took_s > LONG_S:
            self._shrink_to(size_bytes // 2)
        elif took_s <= QUICK_S and size_bytes * GROWTH > self.limit_bytes:
            self.limit_bytes = min(MAX_BYTES, self.limit_bytes * GROWTH)

    def note_late(self, size_bytes: int, acknowledged: float) -> bool:
        """One of this size was not acknowledged in time, but for this share (0 to 1) of it. Returns
        whether the next one is smaller.
        """
        before = self.limit_bytes
        self._shrink_to(int(size_bytes * min(acknowledged, 1.0)) // 2)
        return self.limit_bytes < before

    def _shrink_to(self, size_bytes: int) -> None:
        self.limit_bytes = max(MIN_BYTES, min(self.limit_bytes // 2, size_bytes))
