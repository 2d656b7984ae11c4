"""Rows that do not fulfil a condition: rejected, dropped, or the end of the query."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.progress.status import read_status
from ottla.pipelines.target.constraints import Constraint, fitting, is_marked, mark, refused
from ottla.pipelines.target.expectations import (
    Expectations,
    check_conditions,
    expecting,
    read_expectations,
    settled,
)

pytestmark = pytest.mark.spark

SHORT = (("short", "n < 10"), ("even", "n % 2 = 0"))


@pytest.mark.parametrize(
    ("expect", "otherwise", "said"),
    [
        ({"short": "n < 10"}, "keep", "on_unexpected='keep': write 'reject', 'drop' or 'stop'"),
        ("n < 10", "reject", "expect='n < 10': write names and conditions"),
        ({"short": 7}, "reject", "expect='short': 7: write a name and a condition as SQL"),
        (None, "drop", "on_unexpected='drop' says what becomes of rows"),
    ],
)
def test_arguments_that_are_none_are_refused(expect: Any, otherwise: str, said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        read_expectations(expect, otherwise)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("delay < 10", "expect='short': 'delay < 10' is no condition on a row: .*delay"),
        ("n +", r"expect='short': 'n \+' is no condition on a row"),
        ("n + 1", "expect='short': 'n . 1' is int, and no condition"),
    ],
)
def test_a_condition_that_cannot_be_asked_is_refused(spark: Any, condition: str, said: str) -> None:
    frame = spark.createDataFrame([], "n INT")
    with pytest.raises(PipelineError, match=said):
        check_conditions(frame, (("short", condition),))


def test_a_row_is_rejected_for_the_first_condition_and_after_those_of_the_table(
    spark: Any,
) -> None:
    frame = spark.createDataFrame([(2,), (11,), (3,), (None,), (-2,)], "n INT")
    asked = expecting(frame, Expectations(SHORT))
    assert sorted(row["n"] for row in fitting(asked).collect()) == [-2, 2]
    reasons = {row["row"]: row["reason"] for row in refused(asked).collect()}
    assert reasons == {
        '{"n":11}': "does not fulfil short (n < 10)",
        '{"n":3}': "does not fulfil even (n % 2 = 0)",
        '{"n":null}': "does not fulfil short (n < 10)",
    }
    marked = mark(frame, frame.schema, (Constraint("n > 0", "too small"),))
    both = expecting(marked, Expectations(SHORT))
    assert {row["row"]: row["reason"] for row in refused(both).collect()} == reasons | {
        '{"n":null}': "too small",
        '{"n":-2}': "too small",
    }


def test_rows_are_dropped_or_spared(spark: Any) -> None:
    frame = spark.createDataFrame([(2, False), (11, False), (None, True)], "n INT, t BOOLEAN")
    asked = expecting(frame, Expectations(SHORT, "drop", ("t",)))
    assert not is_marked(asked)
    assert sorted(map(tuple, settled(asked).collect()), key=str) == [(2, False), (None, True)]


class Job:
    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder

    def run(self, **how: Any) -> None:
        rows = topic(self.spark, self.name, bootstrap_servers=self.bootstrap, schema="n INT")
        frame = rows.select("value.n", "partition", "offset")
        to_delta(
            frame,
            self.folder / "t",
            checkpoint=self.folder / "checkpoint",
            trigger={"availableNow": True},
            group=f"group-{self.name}",
            **how,
        ).awaitTermination()

    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.read("t").collect())

    def read(self, name: str) -> Any:
        return self.spark.read.format("delta").load(str(self.folder / name))

    def state(self) -> Any:
        settings = {"bootstrap.servers": self.bootstrap}
        metadata = read_status(settings, f"group-{self.name}", with_lag=False).metadata
        assert metadata is not None
        return metadata.run


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(1), tmp_path)


def values(*numbers: int) -> list[tuple[str, str]]:
    return [(str(n), json.dumps({"n": n})) for n in numbers]


def test_a_stream_keeps_drops_or_stops_and_counts(job: Job, produce: Callable[..., None]) -> None:
    produce(job.name, values(1, 2, 30))
    job.run(expect={"short": "n < 10"})
    assert job.numbers() == [1, 2]
    kept = job.read("t_rejected").select("partition", "offset", "reason", "row").collect()
    row = '{"n":30,"partition":0,"offset":2}'
    assert [tuple(one) for one in kept] == [(0, 2, "does not fulfil short (n < 10)", row)]
    run = job.state()
    assert (run.rejected, run.rejected_reason, run.dropped) == (
        1,
        "does not fulfil short (n < 10)",
        0,
    )

    produce(job.name, values(40, 3, 50))
    job.run(expect={"short": "n < 10"}, on_unexpected="drop")
    assert job.numbers() == [1, 2, 3]
    run = job.state()
    assert (run.rejected, run.dropped) == (0, 2)
    assert job.read("t_rejected").count() == 1

    # The batch that stops is written by the next run, as its expectations say then.
    produce(job.name, values(4, 60))
    with pytest.raises(PipelineError, match=r"does not fulfil short \(n < 10\): .*60.*Nothing of"):
        job.run(expect={"short": "n < 10"}, on_unexpected="stop")
    assert job.numbers() == [1, 2, 3]
    job.run(expect={"short": "n < 100"}, on_unexpected="stop")
    assert job.numbers() == [1, 2, 3, 4, 60]
