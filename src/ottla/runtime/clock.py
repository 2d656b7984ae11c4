"""The only source of time in the broker."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since 1970; the timestamps of records and offsets."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards; for waits and limits."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
