"""What the next commit to a Delta table looks up, ready before it asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from ottla.pipelines.sinks.delta.compaction import Compaction
from ottla.pipelines.sinks.delta.state_ahead import StateAhead
from ottla.pipelines.spark.jvm.delta_log import forget_table, latest_snapshot

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
CHECKSUM = "spark.databricks.delta.writeChecksumFile.enabled"
INCREMENTAL = "spark.databricks.delta.incremental.commit.enabled"
QUERY = "query"


def append(spark: Any, folder: Path, batch: int, query: str = QUERY) -> None:
    frame = spark.range(3).write.format("delta").mode("append")
    frame.option("txnAppId", query).option("txnVersion", batch).save(str(folder))


def delta_log(spark: Any, folder: Path) -> Any:
    found = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    return found.forTable(spark._jsparkSession, str(folder))


def snapshot(spark: Any, folder: Path) -> Any:
    return delta_log(spark, folder).unsafeVolatileSnapshot()


def is_rebuilt(spark: Any, folder: Path) -> bool:
    return bool(snapshot(spark, folder).stateReconstructionTriggered())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def ahead(folder: Path) -> StateAhead:
    return StateAhead(str(folder))


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def test_the_first_commit_to_a_table_is_given_that_there_is_none(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    assert not ahead.give(spark, QUERY, None)  # there is no table
    append(spark, folder, 5, query="another")
    assert ahead.give(spark, QUERY, None)
    assert not snapshot(spark, folder).transactions().contains(QUERY)
    before = snapshot(spark, folder)
    append(spark, folder, 0)
    assert snapshot(spark, folder).version() == 1
    assert not before.stateReconstructionTriggered()


def test_it_comes_from_the_checksum(spark: Any, folder: Path, ahead: StateAhead) -> None:
    for batch in range(4):
        append(spark, folder, batch)
        committed = snapshot(spark, folder)
        assert ahead.give(spark, QUERY, batch)
        assert committed.transactions().apply(QUERY) == batch
        append(spark, folder, batch)  # a batch that the table has
        assert snapshot(spark, folder).equals(committed)
        assert not is_rebuilt(spark, folder)
    assert spark.read.format("delta").load(str(folder)).count() == 4 * 3


def test_the_writers_of_others_are_there_too(spark: Any, folder: Path, ahead: StateAhead) -> None:
    append(spark, folder, 7, query="another")
    append(spark, folder, 1)
    assert ahead.give(spark, QUERY, 1)
    found = snapshot(spark, folder).transactions()
    assert (found.size(), found.apply("another"), found.apply(QUERY)) == (2, 7, 1)


def test_the_snapshot_after_a_checkpoint_gets_it_too(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    for batch in range(13):
        append(spark, folder, batch)
        assert ahead.give(spark, QUERY, batch)
        assert not is_rebuilt(spark, folder)
    assert len(list((folder / "_delta_log").glob("*.checkpoint*.parquet"))) == 1


def test_a_snapshot_of_another_batch_is_not_given_anything(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    append(spark, folder, 1)
    assert not ahead.give(spark, QUERY, 2)
    assert not ahead.give(spark, QUERY, None)
    ahead.compute(spark).result(60)
    assert is_rebuilt(spark, folder)
    assert snapshot(spark, folder).transactions().apply(QUERY) == 1


def test_a_checksum_of_a_commit_that_was_taken_out_is_not_believed(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    for batch in range(2):
        append(spark, folder, batch)
    log = folder / "_delta_log"
    stale = (log / f"{1:020d}.crc").read_text("utf-8")
    # Somebody takes the commit out of the log, but not its checksum, and version 1 is another one.
    (log / f"{1:020d}.json").unlink()
    (log / f".{1:020d}.json.crc").unlink()  # of Hadoop
    forget_table(spark, str(folder))
    append(spark, folder, 7, query="another")
    assert (log / f"{1:020d}.crc").read_text("utf-8") == stale
    forget_table(spark, str(folder))

    assert latest_snapshot(spark, str(folder)).transactions() == {QUERY: 0, "another": 7}
    forget_table(spark, str(folder))
    # Nor when another query of this process has given it to the snapshot of both.
    assert ahead.give(spark, "another", None)
    assert not ahead.give(spark, QUERY, 0)  # the batch that the newest commits have
    assert snapshot(spark, folder).transactions().apply(QUERY) == 0
    assert is_rebuilt(spark, folder)


def test_without_a_checksum_the_state_is_computed(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    with setting(spark, CHECKSUM, "false"), setting(spark, INCREMENTAL, "false"):
        append(spark, folder, 1)
        assert snapshot(spark, folder).checksumOpt().isEmpty()
        assert not ahead.give(spark, QUERY, 1)
        ahead.compute(spark).result(60)
    assert is_rebuilt(spark, folder)
    assert snapshot(spark, folder).transactions().apply(QUERY) == 1


def test_a_second_run_of_the_query_is_still_a_conflict(
    spark: Any, folder: Path, ahead: StateAhead
) -> None:
    append(spark, folder, 1)
    assert ahead.give(spark, QUERY, 1)
    jvm = spark._jvm
    none = jvm.scala.Option.empty()
    given = jvm.scala.Option.apply(snapshot(spark, folder))
    first = delta_log(spark, folder).startTransaction(none, given)
    assert first.txnVersion(QUERY) == 1
    append(spark, folder, 2)  # by the second run

    actions = jvm.PythonUtils.toSeq(
        [jvm.org.apache.spark.sql.delta.actions.SetTransaction(QUERY, 2, none)]
    )
    manual = getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$ManualUpdate$")
    with pytest.raises(Py4JJavaError, match="DELTA_CONCURRENT_TRANSACTION"):
        first.commit(actions, getattr(manual, "MODULE$"))


def test_the_state_takes_one_job_of_spark(spark: Any, folder: Path, ahead: StateAhead) -> None:
    context, group = spark.sparkContext, str(folder)
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    append(spark, folder, 0)
    context.setJobGroup(group, "the query")
    try:
        begun = ahead.compute(spark)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    begun.result(60)

    assert is_rebuilt(spark, folder)
    assert len(context.statusTracker().getJobIdsForGroup(group)) == 1


def test_a_look_for_small_files_takes_none(spark: Any, folder: Path, ahead: StateAhead) -> None:
    append(spark, folder, 1)
    compaction = Compaction(str(folder), 100)
    for _ in range(16):
        assert compaction.batch_written(spark) is None
    assert not is_rebuilt(spark, folder)


def test_a_commit_outside_of_utc_does_not_compute_the_state(spark: Any, folder: Path) -> None:
    with setting(spark, ZONE, "Europe/Berlin"):
        append(spark, folder, 0)
        append(spark, folder, 1)

    assert not is_rebuilt(spark, folder)


def test_a_computation_that_fails_leaves_the_error_to_the_commit(spark: Any) -> None:
    ahead = StateAhead("unknown-scheme://host/table")
    assert not ahead.give(spark, QUERY, 0)
    assert ahead.compute(spark).exception(60) is None


def test_only_a_second_batch_has_the_state_computed(
    spark: Any, folder: Path, ahead: StateAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    monkeypatch.setattr(ahead, "compute", computed.append)
    append(spark, folder, 0)
    ahead.prepare(spark, QUERY, 1)  # the table has another one
    assert not computed
    ahead.prepare(spark, QUERY, 0)
    assert not computed
    ahead.prepare(spark, QUERY, 1)
    assert computed == [spark]
