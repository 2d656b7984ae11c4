"""A batch whose rejected rows were not written when its run was cut off, and what changed then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver

from components import fixture
from ottla.pipelines import PipelineError, to_delta, to_iceberg, to_postgresql, topic
from ottla.pipelines.rejects import rejects
from ottla.pipelines.rejects.decided import FILE, digest
from ottla.pipelines.spark.jvm.plan import described

pytestmark = pytest.mark.spark
postgres = fixture.postgres

NUMBER = "n INT NOT NULL"
TEXT = "n STRING NOT NULL"


class Job:
    """A pipeline of numbers into a table."""

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder
        self.write: Callable[..., Any] = to_delta
        self.target = str(folder / "t")
        self.login: dict[str, Any] = {}

    def run(self, schema: str = NUMBER, n: str = "INT", **how: Any) -> None:
        rows = topic(self.spark, self.name, bootstrap_servers=self.bootstrap, schema=schema)
        frame = rows.selectExpr(f"CAST(value.n AS {n}) AS n", "partition", "offset")
        self.write(
            frame,
            self.target,
            checkpoint=self.folder / "checkpoint",
            trigger={"availableNow": True},
            on_rejects="continue",
            **self.login,
            **how,
        ).awaitTermination()

    def killed(self, monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
        """Run until a batch is in the table and its rejected rows are not, and end there."""

        def write(*_: Any, **__: Any) -> None:
            raise PipelineError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(rejects.Rejects, "write", write)
            with pytest.raises(PipelineError, match="killed"):
                self.run(**how)

    def offsets(self, suffix: str = "") -> list[int]:
        name = f"{self.target}{suffix}"
        if self.write is to_delta:
            frame = self.spark.read.format("delta").load(name)
        elif self.write is to_iceberg:
            frame = self.spark.table(name)
        else:
            properties = {"user": USER, "password": PASSWORD, "driver": "org.postgresql.Driver"}
            frame = self.spark.read.jdbc(self.login["url"], name, properties=properties)
        return sorted(row["offset"] for row in frame.select("offset").collect())

    def reasons(self) -> dict[int, str]:
        rows = self.spark.read.format("delta").load(f"{self.target}_rejected").collect()
        return {row["offset"]: row["reason"] for row in rows}


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(1), tmp_path)


@pytest.fixture(params=["delta", "iceberg", pytest.param("postgresql", marks=pytest.mark.full)])
def table(request: pytest.FixtureRequest, job: Job) -> Job:
    if request.param == "iceberg":
        catalog = request.getfixturevalue("catalog")
        job.write, job.target = to_iceberg, f"{catalog}.db.{job.name.replace('-', '_')}"
    elif request.param == "postgresql":
        database: Postgres = request.getfixturevalue("postgres")
        job.spark.sql(f"ADD JAR '{fetched_driver()}'")
        job.write, job.target = to_postgresql, job.name.replace("-", "_")
        job.login = {"url": database.url, "user": USER, "password": PASSWORD}
    return job


def values(*numbers: Any) -> list[tuple[str, str]]:
    return [("k", json.dumps({"n": n})) for n in numbers]


SHORT = {"short": "n < 10"}


def test_each_row_is_in_one_of_both_though_expectations_change(
    table: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(table.name, values(1, 30, 2, "x"))
    table.killed(monkeypatch, expect=SHORT)
    assert table.offsets() == [0, 2]

    produce(table.name, values(3, 40))
    table.run(expect={"short": "n < 2"})

    assert table.offsets() == [0, 2]
    assert table.offsets("_rejected") == [1, 3, 4, 5]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="none"),
        pytest.param({"expect": {"small": "n < 2"}, "on_unexpected": "drop"}, id="drop"),
        pytest.param(
            {"expect": {"large": "n > 2"}, "on_unexpected": "stop"},
            id="stop",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_batch_that_the_table_has_is_decided_by_its_run(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    produce(job.name, values(1, 30, 2))
    job.killed(monkeypatch, expect=SHORT)

    # Once more cut off, by the settings of now.
    job.killed(monkeypatch, **how)
    job.run(**how)

    assert job.offsets() == [0, 2]
    assert job.reasons() == {1: "does not fulfil short (n < 10)"}
    # From the next batch on it is decided as the settings say.
    produce(job.name, values(50))
    job.run(**how)
    assert job.offsets() == ([0, 2] if how.get("on_unexpected") == "drop" else [0, 2, 3])
    assert list(job.reasons()) == [1]


def test_a_check_that_goes_after_its_rows_were_refused(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(job.name, values(1))
    job.run()
    where = f"delta.`{job.target}`"
    job.spark.sql(f"ALTER TABLE {where} ADD COLUMN more INT")
    job.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (n < 10 AND more IS NULL)")
    produce(job.name, values(2, 30))
    job.killed(monkeypatch)
    job.spark.sql(f"ALTER TABLE {where} DROP CONSTRAINT small")
    job.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT tiny CHECK (n < 3 OR n > 20)")

    produce(job.name, values(3, 40))
    job.run()

    assert job.offsets() == [0, 1, 4]
    assert set(job.reasons()) == {2, 3}
    assert "small" in job.reasons()[2]
    assert "tiny" in job.reasons()[3]


def test_rows_that_did_not_parse_are_rejected_though_the_schema_has_changed(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(job.name, values(1, "30", 2))
    job.killed(monkeypatch)

    job.run(schema=TEXT)

    assert job.offsets() == [0, 2]
    assert job.reasons() == {1: "value.n is not a int: 30"}


def test_rows_refused_by_a_condition_of_another_query_are_not_guessed(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(job.name, values(1, 30, "40"))
    job.killed(monkeypatch, expect=SHORT)

    with pytest.raises(PipelineError, match="Start it once as it was, with the trigger") as caught:
        job.run(schema=TEXT)
    assert "\n" not in str(caught.value)
    assert "does not fulfil short (n < 10)" in str(caught.value)
    assert job.offsets() == [0]

    job.run(expect=SHORT)
    assert set(job.reasons()) == {1, 2}
    produce(job.name, values("50"))
    job.run(schema=TEXT)
    assert job.offsets() == [0, 3]

    # Or as its user decides.
    produce(job.name, values(60))
    job.killed(monkeypatch, schema=TEXT, expect=SHORT)
    (job.folder / "checkpoint" / FILE).unlink()
    job.run(schema=TEXT)
    assert set(job.reasons()) == {1, 2}


def test_a_plan_has_one_digest_in_each_session(job: Job) -> None:
    def of(n: str) -> str:
        rows = topic(job.spark, job.name, bootstrap_servers=job.bootstrap, schema=NUMBER)
        rows.createOrReplaceTempView("numbers")
        names = job.spark.createDataFrame([(1, "one")], "n INT, name STRING")
        names.createOrReplaceTempView("names")
        frame = job.spark.sql(
            f"WITH some AS (SELECT {n} AS n, transform(array(1), x -> x + 1) AS a FROM numbers) "
            "SELECT some.*, name, (SELECT max(n) FROM names) AS m FROM some JOIN names USING (n)"
        )
        return digest("\n".join(described(frame)))

    try:
        assert of("value.n") == of("value.n")
        assert of("value.n") != of("value.n + 1")
    finally:
        job.spark.catalog.dropTempView("numbers")
        job.spark.catalog.dropTempView("names")
