"""How often and how long a failure that passes by itself is waited for.

Pure: the caller passes the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.pipelines.failures.known import Wait
from ottla.pipelines.failures.table import SCHEMA, TOPIC


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Limits of the wait for a failure that passes by itself.

    The wait doubles from `first_wait_s` to `max_wait_s`. `max_topic_tries` applies to a topic
    that the broker does not know: after a restart this may pass, after a deletion it does not.
    `max_schema_tries` applies to data with an unknown schema: the next plan should know it.
    """

    max_tries: int = 40
    max_topic_tries: int = 3
    max_schema_tries: int = 3
    max_elapsed_s: float = 600.0
    first_wait_s: float = 1.0
    max_wait_s: float = 30.0


@dataclass(slots=True)
class Retries:
    """Counts the tries since the query last finished a batch."""

    limits: RetryLimits = field(default_factory=RetryLimits)
    tries: int = 0
    _since: float = 0.0

    def progressed(self) -> None:
        """Reset the count: the query has finished a batch."""
        self.tries = 0

    def next_wait(self, kind: Wait, now: float) -> float | None:
        """Return the seconds to wait before the next try, None when the limit is reached."""
        if not self.tries:
            self._since = now
        limits = {TOPIC: self.limits.max_topic_tries, SCHEMA: self.limits.max_schema_tries}
        limit = limits.get(kind, self.limits.max_tries)
        if self.tries >= limit or self.elapsed(now) >= self.limits.max_elapsed_s:
            return None
        wait = min(self.limits.max_wait_s, self.limits.first_wait_s * 2.0**self.tries)
        self.tries += 1
        return min(wait, max(0.0, self.limits.max_elapsed_s - self.elapsed(now)))

    def elapsed(self, now: float) -> float:
        """Return the seconds since the first failure after which no batch was finished."""
        return now - self._since if self.tries else 0.0
