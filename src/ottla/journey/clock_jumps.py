"""Where a broker's clock was set back: which times still tell what came first. Pure.

While a clock goes on, what is recorded before and after an event bounds its time. Around a jump
back it does not: the time after it is smaller. So only exact times are told there, and bounds that
lie wholly before all times that the clock had twice, or after them.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.journey.offset_history import When
from ottla.timelines.step import Kind, Step

ENDS: Final = (Kind.END, Kind.END_AND_HIGH)
PASSING: Final = (*ENDS, Kind.HIGH, Kind.REPLICA)


class Jumps(NamedTuple):
    """From the smallest time to which a clock was set back to the largest that it had before."""

    first_ms: int
    last_ms: int

    def told(self, when: When) -> When:
        """The moment, if it is known in spite of the jumps."""
        since_ms, until_ms = when
        is_before = until_ms is not None and until_ms < self.first_ms
        is_after = since_ms is not None and since_ms > self.last_ms
        return when if when.is_exact or is_before or is_after else When(None, None)

    def coarse(self, when: When) -> When:
        """Bounds that hold in spite of the jumps, for a moment that is not told."""
        since_ms, until_ms = when
        return When(
            None if since_ms is None else min(since_ms, self.first_ms),
            None if until_ms is None else max(until_ms, self.last_ms),
        )

    def has(self, step: Step) -> bool:
        """Whether the step is of times that the clock may have had twice."""
        return step.until_ms >= self.first_ms and step.since_ms <= self.last_ms

    def hides(self, steps: Iterable[Step], offset: int) -> bool:
        """Whether more than one record had the offset then, so that it is not known which of them
        a step is about.
        """
        own = [step for step in steps if step.broker == -1 and self.has(step)]
        ends = [step for step in own if step.kind in ENDS and step.before <= offset < step.last]
        passed = any(step.kind in PASSING and step.last > offset for step in own)
        is_short = any(
            (step.kind is Kind.OPENED and step.last <= offset)
            or (step.kind is Kind.CUT and step.before <= offset)
            for step in own
        )
        return len(ends) > 1 or (passed and is_short)


def jumps_of(steps: Iterable[Step], now_ms: int) -> Jumps | None:
    """Those of the clocks by which the steps are; None if none was set back. `now_ms` is the time
    of the broker that answers.
    """
    spans: list[tuple[int, int]] = []
    for step in steps:
        if step.kind is Kind.CLOCK:
            spans.append((step.since_ms, step.until_ms))
        elif step.broker == -1 and step.until_ms > now_ms:
            spans.append((now_ms, step.until_ms))  # nothing was recorded since it was set back
    if not spans:
        return None
    return Jumps(min(first for first, _ in spans), max(last for _, last in spans))


def told(jumps: Jumps | None, when: When) -> When:
    """The same where there may be none."""
    return when if jumps is None else jumps.told(when)
