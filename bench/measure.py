"""What a figure is: named measures with goals, and one run of it on one broker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.apache_kafka import KafkaJars

OTTLA = "Ottla"
KAFKA = "Apache Kafka"


@dataclass(frozen=True)
class Measure:
    """One number of a figure.

    `ratio` is the goal for Ottla's median over Kafka's: at least that where more is better, at most
    where less is. `limit` is a goal in the measure's own unit, likewise.
    """

    name: str
    unit: str
    more_is_better: bool
    ratio: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Bench:
    """What every run has at hand. `prefix` stands for the `ottla` command (a profiler, say), with
    "{broker}" for the broker's number where there are several.
    """

    jars: KafkaJars | None
    rdkafka_performance: Path
    quick: bool
    prefix: tuple[str, ...] = ()

    def amount(self, full: int) -> int:
        """How much to send: a tenth of it for a quick look."""
        return max(full // 10, 1) if self.quick else full


class Figure(Protocol):
    """One figure. `runs` is the most runs it is worth; None for as many as asked for."""

    @property
    def name(self) -> str: ...
    @property
    def measures(self) -> Sequence[Measure]: ...
    @property
    def settings(self) -> str: ...
    @property
    def runs(self) -> int | None: ...

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        """One run: a value by each measure's name. What this broker does not have is left out."""
        ...


class ClientError(Exception):
    """A client that was to be measured failed; the text has what it said."""
