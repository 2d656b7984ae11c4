"""A figure: named measures with goals, and a function that runs it once on one broker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from components.apache_kafka import KafkaJars

OTTLA = "Ottla"
KAFKA = "Apache Kafka"


@dataclass(frozen=True)
class Measure:
    """One number of a figure.

    `ratio` is the goal for Ottla's median over Kafka's: a minimum if more is better, a maximum if
    less is better. `limit` is such a goal in the measure's own unit.
    """

    name: str
    unit: str
    more_is_better: bool
    ratio: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Bench:
    """The tools of every run. `prefix` replaces the `ottla` command, for example with a profiler;
    in it "{broker}" stands for the broker id if there are several.
    """

    jars: KafkaJars | None
    rdkafka_performance: Path
    quick: bool
    prefix: tuple[str, ...] = ()

    def amount(self, full: int) -> int:
        """How much to send: a tenth of `full` in a quick run."""
        return max(full // 10, 1) if self.quick else full


class Figure(Protocol):
    """One figure. `runs` limits the number of runs; None: as many as requested."""

    @property
    def name(self) -> str: ...
    @property
    def measures(self) -> Sequence[Measure]: ...
    @property
    def settings(self) -> str: ...
    @property
    def runs(self) -> int | None: ...

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        """One run: the values by measure, without those that this broker does not have."""
        ...


class ClientError(Exception):
    """A measured client failed; the message contains its output."""
