"""A write that meets the commits of another job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from ottla.pipelines.sinks.delta.busy_table import MAX_TRIES, MAX_WAIT_S, is_conflict, tried_again


def raised(*kinds: str) -> PySparkException:
    """What PySpark raises for a Java exception with these classes, the outermost first."""
    java: Any = None
    for kind in reversed(kinds):
        named = SimpleNamespace(getName=lambda kind=kind: kind)
        java = SimpleNamespace(getClass=lambda n=named: n, getCause=lambda c=java: c)
    error = PySparkException("refused")
    error._origin = java
    return error


CONFLICT = "io.delta.exceptions.ConcurrentAppendException"


class Table:
    """A table whose first writes fail; `version` is what is in it after all."""

    def __init__(self, *failures: PySparkException) -> None:
        self.failures = list(failures)
        self.version: int | None = None
        self.writes = 0
        self.prepared = 0
        self.waits: list[float] = []

    def write(self) -> int:
        self.writes += 1
        if self.failures:
            raise self.failures.pop(0)
        return 7

    def prepare(self) -> None:
        self.prepared += 1

    def run(self) -> int | None:
        return tried_again(
            self.write, lambda: self.version, self.prepare, "batch 3 of t", self.waits.append
        )


def test_a_write_that_meets_others_is_tried_again() -> None:
    table = Table(raised(CONFLICT), raised("org.apache.spark.SparkException", CONFLICT))
    assert table.run() == 7
    assert (table.writes, table.prepared, len(table.waits)) == (3, 2, 2)


def test_a_batch_that_is_there_after_all_is_not_written_again() -> None:
    table = Table(raised(CONFLICT))
    table.version = 5
    assert table.run() == 5
    assert (table.writes, table.prepared) == (1, 0)


def test_the_tries_and_the_waits_have_limits() -> None:
    table = Table(*(raised(CONFLICT) for _ in range(MAX_TRIES + 1)))
    with pytest.raises(PySparkException):
        table.run()
    assert table.writes == MAX_TRIES
    assert len(table.waits) == MAX_TRIES - 1
    assert all(0 <= wait <= MAX_WAIT_S for wait in table.waits)


@pytest.mark.parametrize(
    "kind",
    [
        "io.delta.exceptions.ConcurrentTransactionException",
        "io.delta.exceptions.MetadataChangedException",
        "org.apache.spark.sql.delta.DeltaUnsupportedOperationException",
    ],
)
def test_other_failures_are_not_tried_again(kind: str) -> None:
    table = Table(raised(kind))
    with pytest.raises(PySparkException):
        table.run()
    assert table.writes == 1
    assert not is_conflict(ValueError("none of Spark's"))
