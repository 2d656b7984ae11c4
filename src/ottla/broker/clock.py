"""The one place where the broker asks what time it is."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time, milliseconds since 1970; what records and offsets are stamped with."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back; for waits and limits."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
