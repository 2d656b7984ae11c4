"""The outcome of a test: one line per test, a table of the suites, and a summary line for all."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

State = Literal["passed", "failed", "skipped"]
STATES: Final[tuple[State, ...]] = ("passed", "failed", "skipped")


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
    return ", ".join(f"{states.count(state)} {state}" for state in STATES)


def table(outcomes: Sequence[Outcome]) -> str:
    """One row per suite."""
    rows = ["suite  passed  failed  skipped  seconds"]
    for suite in sorted({outcome.suite for outcome in outcomes}):
        mine = [outcome for outcome in outcomes if outcome.suite == suite]
        states = [outcome.state for outcome in mine]
        passed, failed, skipped = (states.count(each) for each in STATES)
        seconds = sum(outcome.seconds for outcome in mine)
        rows.append(f"{suite:<5}  {passed:>6}  {failed:>6}  {skipped:>7}  {seconds:>7.0f}")
    return "\n".join(rows)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """A list with an object per test: suite, name, state, seconds, reason."""
    return json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
