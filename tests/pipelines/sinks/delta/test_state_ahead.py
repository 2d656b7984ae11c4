"""The state of a Delta table, computed before the next commit asks for it."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.sinks.delta.state_ahead import StateAhead

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"


def append(spark: Any, folder: Path, batch: int) -> None:
    frame = spark.range(3).write.format("delta").mode("append")
    frame.option("txnAppId", "query").option("txnVersion", batch).save(str(folder))


def snapshot(spark: Any, folder: Path) -> Any:
    delta_log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    return delta_log.forTable(spark._jsparkSession, str(folder)).unsafeVolatileSnapshot()


def test_the_next_commit_finds_the_state_of_the_last_one(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    append(spark, folder, 0)
    append(spark, folder, 1)
    committed = snapshot(spark, folder)
    assert not committed.stateReconstructionTriggered()

    StateAhead(str(folder)).begin(spark).result(60)

    assert committed.stateReconstructionTriggered()
    assert committed.transactions().apply("query") == 1
    # Delta keeps this snapshot for its next commit, which skips a batch that the table has.
    append(spark, folder, 1)
    assert snapshot(spark, folder).equals(committed)
    append(spark, folder, 2)
    assert snapshot(spark, folder).version() == 2


def test_it_takes_one_job_of_spark(spark: Any, tmp_path: Path) -> None:
    context, group = spark.sparkContext, str(tmp_path)
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    append(spark, tmp_path / "table", 0)
    context.setJobGroup(group, "the query")
    try:
        begun = StateAhead(str(tmp_path / "table")).begin(spark)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    begun.result(60)

    assert snapshot(spark, tmp_path / "table").stateReconstructionTriggered()
    assert len(context.statusTracker().getJobIdsForGroup(group)) == 1


def test_a_commit_outside_of_utc_does_not_compute_the_state(spark: Any, tmp_path: Path) -> None:
    zone = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Europe/Berlin")
    try:
        append(spark, tmp_path / "table", 0)
        append(spark, tmp_path / "table", 1)
    finally:
        spark.conf.set(ZONE, zone)

    assert not snapshot(spark, tmp_path / "table").stateReconstructionTriggered()


def test_a_computation_that_fails_leaves_the_error_to_the_commit(spark: Any) -> None:
    begun = StateAhead("unknown-scheme://host/table").begin(spark)
    assert begun.exception(60) is None
