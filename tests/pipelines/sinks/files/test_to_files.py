"""A stream into a folder of files: restarts, rejected rows, a folder that does not fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_files, topic

pytestmark = [pytest.mark.spark, pytest.mark.full]

SCHEMA = "id BIGINT NOT NULL, word STRING"


def records(start: int, stop: int) -> list[tuple[str, str]]:
    return [(str(n), json.dumps({"id": n, "word": f"w{n % 3}"})) for n in range(start, stop)]


class Job:
    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder

    def run(self, **how: Any) -> Any:
        where = {"starting": how.pop("starting", "earliest")}
        checkpoint = self.folder / how.pop("checkpoint", "checkpoint")
        frame = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, schema=SCHEMA, **where
        )
        rows = frame.selectExpr(*how.pop("columns", ("value.*", "partition", "offset")))
        trigger = {"availableNow": True}
        query = to_files(rows, self.folder / "out", checkpoint=checkpoint, trigger=trigger, **how)
        query.awaitTermination()
        return query

    def ids(self, kind: str = "parquet") -> list[int]:
        rows = self.spark.read.format(kind).load(str(self.folder / "out")).select("id").collect()
        return sorted(row["id"] for row in rows)


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(), tmp_path)


def forget_last_batch(folder: Path) -> None:
    """As after a kill between the sink's commit and Spark's own note that the batch is done."""
    last = max(
        int(path.name) for path in (folder / "checkpoint/commits").iterdir() if path.name.isdigit()
    )
    (folder / f"checkpoint/commits/{last}").unlink()
    (folder / f"checkpoint/commits/.{last}.crc").unlink(missing_ok=True)


def test_rows_arrive_once_over_restarts_and_more_batches_than_are_joined(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    for number in range(12):  # Spark joins its lists each tenth batch
        produce(job.name, records(number, number + 1))
        if number % 4 == 0:
            produce(job.name, [("x", "bad")])
        job.run(partition_by="word")
        forget_last_batch(tmp_path)
    job.run()
    assert job.ids() == list(range(12))
    assert (tmp_path / "out/word=w0").is_dir()
    rejected = job.spark.read.parquet(f"{tmp_path}/out_rejected").collect()
    assert len(rejected) == 3

    with pytest.raises(PipelineError, match="holds batches of another checkpoint"):
        job.run(checkpoint="another")
    with pytest.raises(PipelineError, match="does not keep that"):
        job.run(checkpoint="another", starting="table")
    with pytest.raises(PipelineError, match="partitioned by word, not by id"):
        job.run(partition_by="id")
    with pytest.raises(PipelineError, match="has parquet files: write format='parquet'"):
        job.run(format="json")
    with pytest.raises(PipelineError, match="word is int in the rows and string in the folder"):
        job.run(columns=("value.id", "1 AS word", "partition", "offset"))
    more = ("value.*", "partition", "offset", "1 AS more")
    with pytest.raises(PipelineError, match=r"the column more \(int\), which the folder"):
        job.run(columns=more)
    produce(job.name, records(12, 13))
    job.run(columns=more, schema_changes="add")
    assert job.ids() == list(range(13))

    shutil.rmtree(tmp_path / "out")
    with pytest.raises(PipelineError, match="was deleted and created again"):
        job.run()


def test_json_lines_and_a_topic_that_was_made_again(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    produce(job.name, records(0, 4))
    job.run(format="json")
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    admin.delete_topics([job.name])[job.name].result(30)
    admin.create_topics([NewTopic(job.name, 2, 1)])[job.name].result(30)
    produce(job.name, records(4, 6))
    with pytest.raises(PipelineError, match="deleted and created again"):
        job.run(format="json")
    job.run(format="json", on_lost="skip")  # a new query, whose batches begin at 0 again
    assert job.ids("json") == list(range(6))
    lines = [
        json.loads(line)
        for file in (tmp_path / "out").glob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert sorted(line["id"] for line in lines) == list(range(6))


def test_a_target_that_does_not_fit_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 1))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.csv").write_text("a,b\n")
    with pytest.raises(PipelineError, match="files that to_files did not write"):
        job.run()
    (tmp_path / "out/mine.csv").unlink()
    for how, words in (
        ({"format": "csv"}, "write 'parquet' or 'json'"),
        ({"partition_by": "nope"}, "is not a column of the frame"),
        ({"columns": ("value.id",), "partition_by": "id"}, "all columns"),
        ({"columns": ("value.id", "value"), "partition_by": "value"}, "name of a folder"),
        ({"columns": ("null AS nothing",)}, "nothing is void, which parquet files cannot hold"),
        ({"columns": ("value.id", "value.id AS ID")}, "two columns id"),
    ):
        with pytest.raises(PipelineError, match=words):
            job.run(**how)


def test_a_batch_frame_is_written_once(spark: Any, tmp_path: Path) -> None:
    for number in range(2):
        to_files(spark.range(number, number + 2), tmp_path / "out", checkpoint=tmp_path / "calls")
    assert sorted(row[0] for row in spark.read.parquet(f"{tmp_path}/out").collect()) == [0, 1, 1, 2]


def test_a_checkpoint_that_is_older_than_its_folder_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 10))
    job.run()
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    produce(job.name, records(10, 20))
    job.run()
    produce(job.name, records(20, 30))
    with pytest.raises(PipelineError, match="was set back, for example by a backup"):
        job.run(checkpoint="backup")
    assert job.ids() == list(range(20))
