"""Ways to do one job, and the last way as a share of the one before it."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.measure import Measure

SHARE = "share"
CPU = "CPU"


@dataclass(frozen=True)
class Taken:
    """What one way took: the value in the comparison's unit, and CPU time a row in µs."""

    value: float
    cpu_us: float = 0.0


class Comparison:
    """`ways`: the job of each label; the order is that of the report.

    `goal` is the value of the last way over that of the one before it: a minimum if more is better,
    a maximum if less is better. `cpu_goal` is the same for CPU time; with None it is not reported.
    """

    def __init__(
        self,
        title: str,
        unit: str,
        goal: float,
        ways: Mapping[str, str],
        *,
        more_is_better: bool,
        cpu_goal: float | None = None,
        share: str = SHARE,
    ) -> None:
        self._title, self._share, self._ways = title, share, dict(ways)
        self._tells_cpu = cpu_goal is not None
        measures = [Measure(self._name(label), unit, more_is_better) for label in ways]
        measures.append(Measure(self._name(share), "×", more_is_better, limit=goal))
        if self._tells_cpu:
            cpu = [Measure(self._name(label, CPU), "µs/row", False) for label in ways]
            cpu.append(Measure(self._name(share, CPU), "×", False, limit=cpu_goal))
            measures += cpu
        self.measures = tuple(measures)
        labels = tuple(ways)
        self._turns = itertools.cycle((labels, labels[::-1]))

    def _name(self, *words: str) -> str:
        return f"{self._title}, {' '.join(words)}"

    def measure(self, run: Callable[[str], Taken]) -> dict[str, float]:
        """Run each way's job, in an order that alternates from run to run."""
        found = {label: run(self._ways[label]) for label in next(self._turns)}
        *_, before, last = (found[label] for label in self._ways)
        values = {self._name(label): found[label].value for label in self._ways}
        values[self._name(self._share)] = last.value / before.value
        if self._tells_cpu:
            values |= {self._name(label, CPU): found[label].cpu_us for label in self._ways}
            values[self._name(self._share, CPU)] = last.cpu_us / before.cpu_us
        return values
