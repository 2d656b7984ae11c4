"""What is read again of a batch for its rejected rows, and when they are written."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.types import LongType

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.kafka.brokers import TopicState
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.pipelines.rejects import read_again, rejects
from ottla.pipelines.rejects.pending import Part
from ottla.pipelines.rejects.read_again import find_part
from ottla.pipelines.rejects.told import Seen
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.source.source import Source
from ottla.pipelines.spark.jvm.execution import Execution

pytestmark = pytest.mark.spark

SOURCE = Source("flights", KafkaSettings("localhost:9092"), {})
SPAN = ({0: 100, 1: 5_000, 2: -2}, {0: 9_000, 1: 6_000, 2: 10})
WITHIN_S = 60
OFFSETS = 8_900 + 1_000 + 10


def counted(rejected: int, read: int, *blocks: tuple[int, int]) -> dict[str, Any]:
    return {"rejected": rejected, "read": read, "blocks": blocks}


def find(counts: dict[str, Any] | None, *, reads_all: bool) -> Part | None:
    return find_part(SOURCE, "id", SPAN, counts, reads_all=reads_all)


def part(first: dict[int, int], end: dict[int, int], count: int | None) -> Part:
    return Part("flights", "id", {}, first, end, count)


def test_a_batch_without_rejected_rows_is_not_read_again() -> None:
    assert find(counted(0, 50), reads_all=True) is None
    assert find(counted(0, OFFSETS), reads_all=False) is None
    assert find_part(SOURCE, "id", None, counted(1, 1), reads_all=True) is None


def test_only_the_blocks_of_rejected_rows_are_read_again() -> None:
    found = find(counted(3, 50, (0, 4), (0, 2), (1, 78)), reads_all=True)

    assert found == part({0: 128, 1: 5_000}, {0: 320, 1: 5_056}, 3)


def test_a_batch_that_was_not_read_to_its_end_is_read_again_whole() -> None:
    whole = part(*SPAN, None)
    assert find(counted(0, OFFSETS - 1), reads_all=False) == whole
    assert find(None, reads_all=True) == whole


def test_a_note_is_read_as_far_as_the_broker_holds_it(caplog: pytest.LogCaptureFixture) -> None:
    noted = part({0: 5, 1: 3}, {0: 10, 1: 9}, 4)
    whole = TopicState("flights", "id", {0: 0, 1: 0}, {0: 10, 1: 9})
    assert read_again.readable(noted, whole) == noted
    assert caplog.text == ""

    cut = TopicState("flights", "id", {0: 7, 1: 0}, {0: 10, 1: 6})
    assert read_again.readable(noted, cut) == part({0: 7, 1: 3}, {0: 10, 1: 6}, None)
    assert "no longer holds the offsets 5 to 6 of flights-0" in caplog.text
    assert "no longer holds the offsets 6 to 8 of flights-1" in caplog.text
    for gone in (None, replace(whole, topic_id="other"), replace(cut, latest={0: 1, 1: 1})):
        assert read_again.readable(noted, gone) is None


@pytest.mark.parametrize("found", [1, 3])
def test_rejected_rows_that_compaction_removed_are_counted(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    found: int,
) -> None:
    """A record may go between the batch that rejects it and the read of its bytes."""
    frame: Any = SimpleNamespace()
    seen: list[Any] = []

    def read(*asked: Any) -> Seen:
        seen.append(asked)
        return Seen(found, None, "bad")

    sink: Any = SimpleNamespace(name="t", short_name="t")
    source = replace(SOURCE, schemas={"value": LongType()})
    writer = rejects.Rejects(Any, sink, Any, (source,), {})  # type: ignore[arg-type]
    writer._target = sink
    schemas = {"value": "long"}
    waiting = replace(part({0: 0}, {0: 10}, 3), schemas=schemas)
    batch: Any = SimpleNamespace(number=7)
    writer._waiting = rejects.Waiting(7, batch, {}, 0.0, 1, [waiting], 3)
    writer.count = 3
    committed: list[Any] = []
    monkeypatch.setattr(read_again, "read_parts", lambda *_: frame)
    monkeypatch.setattr(read_again, "only_rejected", lambda raw, source: raw)
    monkeypatch.setattr(rejects, "seen_in", read)
    monkeypatch.setattr(rejects.Rejects, "_commit", lambda self, *of: committed.append(of))

    writer.finish()
    assert committed == [(frame, batch)]
    assert seen == [(frame, 3, None)], "once: what Spark reads may be long"
    assert (writer.count, writer.reason) == (found, "bad")
    assert ("2 rejected rows of flights are lost" in caplog.text) == (found == 1)


SCHEMA = "id BIGINT NOT NULL"
RECORDS = 60
EACH_BATCH = 20


class Job:
    """A topic in which each tenth record does not parse, read in batches of 20 records."""

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder

    def run(self, *, max_rows: int = EACH_BATCH, **arguments: Any) -> Any:
        source: dict[str, Any] = {"schema": SCHEMA}
        source |= {
            name: arguments.pop(name) for name in ("starting", "schema") if name in arguments
        }
        rows = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, max_rows=max_rows, **source
        )
        arguments.setdefault("trigger", {"availableNow": True})
        arguments.setdefault("checkpoint", self.folder / "checkpoint")
        query = to_delta(
            rows.select("value.*", "partition", "offset"), self.folder / "table", **arguments
        )
        if "availableNow" in arguments["trigger"]:
            query.awaitTermination()
        return query

    @property
    def note(self) -> Path:
        return self.folder / "checkpoint" / "ottla-rejects.json"

    def rejected(self) -> list[bytes]:
        rows = self.spark.read.format("delta").load(f"{self.folder / 'table'}_rejected").collect()
        return sorted(bytes(row["value"]) for row in rows)

    def commits(self) -> list[dict[str, Any]]:
        """The userMetadata of the commits to the rejected rows, the first first."""
        history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.folder / 'table'}_rejected`")
        rows = history.where("userMetadata IS NOT NULL").orderBy("version").collect()
        return [json.loads(row["userMetadata"]) for row in rows]


BAD = [b'{"other": %d}' % number for number in range(0, RECORDS, 10)]


@pytest.fixture
def job(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> Job:
    name = new_topic(1)
    values = [json.dumps({"id" if number % 10 else "other": number}) for number in range(RECORDS)]
    produce(name, [(None, value) for value in values])
    return Job(spark, bootstrap, name, tmp_path)


def test_the_rejected_rows_of_several_batches_share_a_commit(
    job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    job.run()

    assert job.rejected() == BAD
    assert [commit["batch"] for commit in job.commits()] == [2]
    assert "6 rows of" in caplog.text
    assert "rejected in batches 0 to 2" in caplog.text
    assert not job.note.exists()


WHY = "value lacks the field id, which is NOT NULL"


def test_the_brokers_are_told_where_rejected_rows_lie_and_then_which_ones_they_are(
    job: Job,
) -> None:
    runner = QUERIES[job.run().id]

    for batch, first in enumerate((0, 20)):
        said = RejectedOffsets((RejectedRange(first, first + EACH_BATCH),), "table_rejected")
        assert runner.rejected_in(batch) == {(job.name, 0): said}
    ranges = tuple(RejectedRange(at, at + 1, WHY) for at in range(0, RECORDS, 10))
    assert runner.rejected_in(2) == {
        (job.name, 0): RejectedOffsets(ranges, "table_rejected", (0, RECORDS))
    }
    assert runner.rejected_in(3) is None


def test_rows_that_are_written_with_their_batch_are_told_at_once(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejects, "MAX_WAIT_S", 0.0)
    runner = QUERIES[job.run().id]

    for batch, first in enumerate(range(0, RECORDS, EACH_BATCH)):
        ranges = tuple(RejectedRange(at, at + 1, WHY) for at in (first, first + 10))
        said = RejectedOffsets(ranges, "table_rejected")
        assert runner.rejected_in(batch) == {(job.name, 0): said}


def test_rows_of_a_note_are_told_with_the_next_batch(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_in_batch(job, monkeypatch, 2)
    runner = QUERIES[job.run().id]

    assert runner.rejected_in(1) is None  # the last run wrote it
    (said,) = (runner.rejected_in(2) or {}).values()
    assert {one.first for one in said.ranges} == set(range(0, RECORDS, 10))
    assert all(one.reason == WHY for one in said.ranges)
    assert said.again is not None
    assert said.again[0] == 0


def journey(job: Job, offset: int, *options: str) -> str:
    """What `ottla journey` prints of a message, once the pipeline's group has passed it."""
    command = [sys.executable, "-m", "ottla", "journey", job.name, "0", str(offset), *options]
    environment = os.environ | {"OTTLA_BOOTSTRAP": job.bootstrap, "COLUMNS": "200"}
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=WITHIN_S, check=True
        )
        if "pipeline " in done.stdout or '"batch"' in done.stdout:
            return done.stdout
    raise AssertionError(done.stdout)


def test_the_journey_of_a_rejected_message_and_of_one_that_is_a_row(
    job: Job, produce: Callable[..., None], new_topic: Callable[..., str], tmp_path: Path
) -> None:
    job.name = new_topic(1)
    records = [('{"id": 1}', '{"n": 5}'), ("plain text", '{"n": 6}'), ('{"id": 1}', "no number")]
    produce(job.name, [*records, ('{"id": 2}', '{"n": 7}')])
    rows = topic(
        job.spark,
        job.name,
        bootstrap_servers=job.bootstrap,
        schema="n INT",
        key_schema="id BIGINT NOT NULL",
    ).select("key.id", "value.n", "partition", "offset")
    to_delta(
        rows,
        tmp_path / "orders",
        checkpoint=tmp_path / "orders-checkpoint",
        keys=["id"],
        trigger={"availableNow": True},
        group=f"{job.name}-delta",
    ).awaitTermination()

    text = journey(job, 1)
    assert "rejected: key is not a JSON object of the schema; kept in orders_rejected" in text
    assert "row" not in text
    assert "rejected: value is not a JSON object of the schema; kept in" in journey(job, 2)
    # The message after it with the same key was rejected, so it is the row.
    assert "inserted; it is the row now" in journey(job, 0)
    assert "rejected:" not in journey(job, 3)
    (one,) = json.loads(journey(job, 1, "--json"))["delivered"]
    assert one["row"] is None
    assert one["rejected"] == {
        "certain": True,
        "reason": "key is not a JSON object of the schema",
        "kept": "orders_rejected",
        "first_offset": 1,
        "last_offset": 1,
    }


def test_long_ranges_are_read_by_spark(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_again, "MAX_READ_HERE", 0)
    job.run()

    assert job.rejected() == BAD


def test_at_most_so_many_batches_share_a_commit(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects, "MAX_WAITING_BATCHES", 2)
    job.run(max_rows=10)

    assert job.rejected() == BAD
    assert [commit["batch"] for commit in job.commits()] == [1, 3, 5]


def test_a_batch_waits_no_longer_than_the_limit(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects, "MAX_WAIT_S", 0.0)
    job.run()

    assert job.rejected() == BAD
    assert [commit["batch"] for commit in job.commits()] == [0, 1, 2]


def kill_in_batch(job: Job, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Run until this batch is committed, then end as a kill would: nothing more is written."""
    write = rejects.Rejects.write

    def killed(self: Any, execution: Any, batch: Any, *arguments: Any, **names: Any) -> None:
        if batch.number == number:
            raise PipelineError("killed")
        write(self, execution, batch, *arguments, **names)

    with monkeypatch.context() as patch:
        patch.setattr(rejects.Rejects, "write", killed)
        with pytest.raises(PipelineError, match="killed"):
            job.run()


def test_a_run_that_is_killed_leaves_a_note_and_the_next_run_writes_the_rows(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kill_in_batch(job, monkeypatch, 2)
    assert job.note.exists()
    noted = job.note.read_text()

    job.run()
    assert job.rejected() == BAD
    assert "4 rejected rows of earlier batches, which were not written, are kept in" in caplog.text
    assert not job.note.exists()

    # As after a kill between the commit and the removal of the note.
    job.note.write_text(noted)
    job.run()
    assert job.rejected() == BAD


def test_a_commit_that_fails_is_tried_again_without_a_loss(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = rejects.Rejects._commit
    failures = [KafkaException(KafkaError(KafkaError._TRANSPORT))]

    def fails_once(self: Any, frame: Any, batch: Any) -> None:
        if failures:
            raise failures.pop()
        commit(self, frame, batch)

    monkeypatch.setattr(rejects.Rejects, "_commit", fails_once)
    # Counted once each, although the restart reads the last of them again.
    job.run(max_rejects=len(BAD))

    assert not failures
    assert job.rejected() == BAD
    # The note's rows before the query starts again, then those of the batch that failed.
    assert [one["batch"] for one in job.commits()] == [1, 2]
    assert not job.note.exists()


def test_a_restart_asks_again_what_the_broker_holds(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    commit = rejects.Rejects._commit
    failures = [KafkaException(KafkaError(KafkaError._TRANSPORT))]

    def fails_once(self: Any, frame: Any, batch: Any) -> None:
        if failures:
            for removed in admin.delete_records([TopicPartition(job.name, 0, 15)]).values():
                removed.result()
            raise failures.pop()
        commit(self, frame, batch)

    monkeypatch.setattr(rejects.Rejects, "_commit", fails_once)
    job.run()

    assert not failures
    assert job.rejected() == BAD[2:]
    assert f"no longer holds the offsets 0 to 14 of {job.name}-0" in caplog.text
    assert not job.note.exists()


def test_a_note_keeps_the_schema_by_which_rows_were_rejected(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = DeltaSink.write

    def killed(self: Any, frame: Any, batch: Any) -> Any:
        if batch.number == 2:
            raise PipelineError("killed")
        return write(self, frame, batch)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "write", killed)
        with pytest.raises(PipelineError, match="killed"):
            job.run()

    # With this schema a row without an id parses; the rows of the note are rejected all the same.
    job.run(schema="id BIGINT")
    assert job.rejected() == BAD[:4]


def test_a_table_without_its_checkpoint_still_gets_the_rejected_rows(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_in_batch(job, monkeypatch, 1)
    shutil.rmtree(job.folder / "checkpoint")

    job.run(starting="table")
    assert job.rejected() == BAD
    # The rejected rows of the last batch are known to be written: they are not written twice.
    shutil.rmtree(job.folder / "checkpoint")
    job.run(starting="table")
    assert job.rejected() == BAD


def test_offsets_that_the_broker_has_removed_are_named(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kill_in_batch(job, monkeypatch, 2)
    noted = job.note.read_text()
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    for removed in admin.delete_records([TopicPartition(job.name, 0, 15)]).values():
        removed.result()
    job.run()

    assert job.rejected() == BAD[2:]
    assert f"no longer holds the offsets 0 to 14 of {job.name}-0" in caplog.text

    # As after a kill between the commit and the removal of the note: nothing is lost.
    job.note.write_text(noted)
    caplog.clear()
    job.run()
    assert job.rejected() == BAD[2:]
    assert "no longer holds" not in caplog.text


@pytest.mark.parametrize("max_rows", [20, 60])
def test_a_query_that_is_stopped_writes_what_waits(
    job: Job, monkeypatch: pytest.MonkeyPatch, max_rows: int
) -> None:
    monkeypatch.setattr(Execution, "more_waits", lambda self: True)
    query = job.run(max_rows=max_rows, trigger={"processingTime": "100 milliseconds"})
    query.processAllAvailable()
    assert job.note.exists()

    query.stop()
    assert job.rejected() == BAD
    assert not job.note.exists()
