"""The results: every run's values, stored as JSON beside the report, and their medians."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import KAFKA, OTTLA, Measure

# Of one figure: contestant -> name of the measure -> one value a run.
Values = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class Row:
    """One measure of both brokers. A broker without a value has None."""

    measure: Measure
    ottla: Sequence[float]
    kafka: Sequence[float]

    @property
    def ratio(self) -> float | None:
        """Ottla's median over Kafka's."""
        if not self.ottla or not self.kafka or not median(self.kafka):
            return None
        return median(self.ottla) / median(self.kafka)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal or without values."""
        verdicts: list[bool] = []
        if self.measure.limit is not None and self.ottla:
            verdicts.append(self._good(median(self.ottla), self.measure.limit))
        if self.measure.ratio is not None and self.ratio is not None:
            verdicts.append(self._good(self.ratio, self.measure.ratio))
        return all(verdicts) if verdicts else None

    def _good(self, value: float, goal: float) -> bool:
        return value >= goal if self.measure.more_is_better else value <= goal

    def goal(self) -> str:
        """The goal in words, such as `≤ 0.5 s` or `≥ 1.0 × Kafka`."""
        sign = "≥" if self.measure.more_is_better else "≤"
        if self.measure.limit is not None:
            return f"{sign} {self.measure.limit:g} {self.measure.unit}"
        return f"{sign} {self.measure.ratio:.1f} × Kafka" if self.measure.ratio else ""


def rows(measures: Sequence[Measure], values: Values) -> list[Row]:
    """The rows of one figure."""
    ottla, kafka = values.get(OTTLA, {}), values.get(KAFKA, {})
    return [Row(one, ottla.get(one.name, ()), kafka.get(one.name, ())) for one in measures]


def number(value: float) -> str:
    """A value with about three significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def spread(values: Sequence[float]) -> str:
    """Median, minimum and maximum: `241.0 (220.1–250.3)`; a dash without values."""
    if not values:
        return "–"
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def load(path: Path) -> dict[str, Any]:
    """The results of earlier runs; empty if there are none."""
    if not path.is_file():
        return {}
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept


def keep(path: Path, figure: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the stored runs of one figure; return all stored results."""
    kept = {**load(path), figure: dict(entry)}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return kept
