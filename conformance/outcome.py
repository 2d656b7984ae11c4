"""The outcome of a test: one line per test, and a summary line for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """One test of one suite. `reason` says why it failed or was skipped."""

    suite: str
    name: str
    state: State
    seconds: float = 0.0
    reason: str = ""

    def line(self) -> str:
        """The test's line, such as `passed   A  0001 multiobj (1.2 s)`."""
        took = f" ({self.seconds:.1f} s)" if self.seconds else ""
        told = f": {self.reason}" if self.reason else ""
        return f"{self.state:<7}  {self.suite}  {self.name}{took}{told}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """The summary line: `N passed, N failed, N skipped`."""
    states = [outcome.state for outcome in outcomes]
    return ", ".join(f"{states.count(state)} {state}" for state in ("passed", "failed", "skipped"))
