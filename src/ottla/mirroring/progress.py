"""How far a mirror is, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.mirroring import events
from ottla.mirroring.events import Event
from ottla.wording.plural import plural
from ottla.wording.sizes import size_text


@dataclass(slots=True)
class Progress:
    """Counts what was committed at the target. Times are of any clock, in seconds."""

    began_s: float
    records: int = 0
    bytes: int = 0
    partitions: int = 0
    lag: int = 0
    """Offsets of the source that are not mirrored yet, as far as this instance knows."""
    _then_s: float = -1.0
    _then_records: int = 0
    _then_bytes: int = 0

    def add(self, records: int, bytes_: int) -> None:
        """A transaction was committed."""
        self.records += records
        self.bytes += bytes_

    def event(self, now_s: float) -> Event:
        """The state, with the rates since the event before."""
        since_s = max(now_s - (self._then_s if self._then_s >= 0 else self.began_s), 1e-3)
        facts: dict[str, Any] = {
            "seconds": round(now_s - self.began_s, 1),
            "records": self.records,
            "bytes": self.bytes,
            "records_per_s": round((self.records - self._then_records) / since_s),
            "bytes_per_s": round((self.bytes - self._then_bytes) / since_s),
            "partitions": self.partitions,
            "lag": self.lag,
        }
        self._then_s, self._then_records, self._then_bytes = now_s, self.records, self.bytes
        text = (
            f"{plural(self.records, 'record')} mirrored, lag {self.lag:,}, "
            f"{facts['records_per_s']:,}/s, {size_text(facts['bytes_per_s'])}/s, "
            f"{plural(self.partitions, 'partition')}"
        )
        return Event(events.PROGRESS, text, facts)
