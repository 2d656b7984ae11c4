"""How far the brokers of a test are ahead of the machine's time.

The kit keeps it in a file, from which each broker reads it when it starts: one that was stopped,
or that joins later, has the time of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class TimeAhead:
    """The file; without it brokers have the machine's time."""

    path: Path

    @classmethod
    def of(cls, control: Path) -> Self:
        """That of a broker with this control socket; all sockets of a cluster are in one folder."""
        return cls(control.with_name("ahead-ms"))

    def read_ms(self) -> int:
        """How far a broker that starts now has to be ahead."""
        return int(self.path.read_text()) if self.path.exists() else 0

    def add(self, by_ms: int) -> None:
        """Brokers that start from now on are so much further ahead."""
        self.path.write_text(str(self.read_ms() + by_ms))
