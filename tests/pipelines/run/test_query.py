"""Failures of a running query, for real: one line each, and what a PipelineQuery promises."""

import itertools
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.progress.report import REPORTERS

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, word STRING"
ONCE = {"availableNow": True}


class Lab:
    """One topic with ten rows; `fail` runs a query over it that must fail."""

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark = spark
        self.name = name
        self.bootstrap = bootstrap
        # Explicit offsets: each run of a test reads the topic from its beginning.
        self.frame = topic(
            spark, name, bootstrap_servers=bootstrap, schema=SCHEMA, starting={0: 0, 1: 0}
        )
        self.rows = self.frame.select("value.*")
        self.table = folder / "table"
        self.checkpoint = folder / "checkpoint"

    def run(self, frame: Any, **options: Any) -> None:
        options = {"checkpoint": self.checkpoint, "trigger": ONCE, **options}
        to_delta(frame, options.pop("target", self.table), **options).awaitTermination()

    def fail(self, frame: Any, **options: Any) -> str:
        with pytest.raises(PipelineError) as caught:
            self.run(frame, **options)
        return str(caught.value)


@pytest.fixture
def lab(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> Lab:
    name = new_topic()
    produce(name, [(str(n), json.dumps({"id": n, "word": f"w{n}"})) for n in range(10)])
    return Lab(spark, bootstrap, name, tmp_path)


def check_line(said: str, capfd: pytest.CaptureFixture[str], state_folder: Path) -> None:
    """One line, whose trace file holds Spark's own words; nothing from Python on the screen."""
    assert "\n" not in said
    file = re.search(r"\(Spark's trace: (.+?)\)", said)
    assert file is not None
    assert Path(file[1]).parent == state_folder / "traces"
    assert "\tat " in Path(file[1]).read_text()
    assert capfd.readouterr() == ("", "")


def test_columns_that_do_not_fit(
    lab: Lab, capfd: pytest.CaptureFixture[str], state_folder: Path
) -> None:
    lab.run(lab.rows)
    shutil.rmtree(lab.checkpoint)
    capfd.readouterr()

    said = lab.fail(lab.frame.selectExpr("value.*", "1 AS extra"))
    assert f"has the column extra (int), which the table {lab.table} does not have" in said

    shutil.rmtree(lab.checkpoint, ignore_errors=True)
    said = lab.fail(lab.frame.selectExpr("value.id", "array(1) AS word"))
    assert "The column word is array<int> in the rows and string in the table" in said
    assert not lab.checkpoint.exists()

    said = lab.fail(lab.frame.selectExpr("CAST(value.id AS INT) AS id", "value.word"))
    assert "The column id is INT in the rows and BIGINT in the table" in said
    check_line(said, capfd, state_folder)


def test_places_that_cannot_be_written(
    lab: Lab, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    for options, parts in (
        ({"target": "/proc/nowhere/table"}, ["cannot write to /proc/nowhere"]),
        ({"checkpoint": tmp_path / "file"}, [f"The checkpoint {tmp_path}/file is a file"]),
        ({"target": "s3a://lake/table"}, ["s3a://", "org.apache.hadoop:hadoop-aws:3."]),
        ({"checkpoint": "s3a://lake/cp"}, ["s3a://", "org.apache.hadoop:hadoop-aws:3."]),
        ({"target": "abfss://lake@x/table"}, ["org.apache.hadoop:hadoop-azure:3."]),
    ):
        said = lab.fail(lab.rows, **options)
        for part in parts:
            assert part in said
        assert "\n" not in said
        assert capfd.readouterr() == ("", "")


def test_a_python_function_that_raises(
    lab: Lab, capfd: pytest.CaptureFixture[str], state_folder: Path
) -> None:
    @F.udf("string")
    def no_sevens(word: str) -> str:
        if word == "w7":
            raise ValueError("no sevens here")
        return word

    said = lab.fail(lab.frame.select(no_sevens("value.word").alias("word")))

    assert "A Python function of the query raised ValueError: no sevens here (" in said
    assert f"{__file__}, line " in said
    assert ", in no_sevens)" in said
    check_line(said, capfd, state_folder)


def test_a_value_that_cannot_be_computed(
    lab: Lab, capfd: pytest.CaptureFixture[str], state_folder: Path
) -> None:
    said = lab.fail(lab.frame.selectExpr("cast(value.word AS INT) AS n"))

    assert "in 'cast(value.word AS INT) AS n'" in said
    assert "The value 'w" in said
    check_line(said, capfd, state_folder)


def test_another_run_on_the_checkpoint(
    lab: Lab,
    produce: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
    state_folder: Path,
) -> None:
    query: Any = to_delta(lab.rows, lab.table, checkpoint=lab.checkpoint)
    query.processAllAvailable()
    # What another process writes there: the offsets of the next batch.
    shutil.copy(lab.checkpoint / "offsets" / "0", lab.checkpoint / "offsets" / "1")
    capfd.readouterr()

    produce(lab.name, [("k", json.dumps({"id": 1}))])
    with pytest.raises(PipelineError) as caught:
        query.processAllAvailable()

    assert f"Another run uses the checkpoint {lab.checkpoint}" in str(caught.value)
    check_line(str(caught.value), capfd, state_folder)


def test_our_own_errors_and_pythons_keep_their_words(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from ottla.pipelines.run import batch

    def raise_ours(*given: object) -> None:
        raise PipelineError("the topic flights was created again")

    def raise_pythons(*given: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(batch.BatchRunner, "__call__", raise_ours)
    assert lab.fail(lab.rows) == "the topic flights was created again"

    monkeypatch.setattr(batch.BatchRunner, "__call__", raise_pythons)
    said = lab.fail(lab.rows)
    assert re.match(rf"table stopped in batch 0: KeyError: 'gone' \({__file__}, line \d+\)", said)
    assert capfd.readouterr() == ("", "")


def test_a_commit_that_meets_another_one_is_tried_again(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab.run(lab.rows)
    shutil.rmtree(lab.checkpoint)
    started, go_on = tmp_path / "started", tmp_path / "go-on"

    # Delta has read the table's snapshot when the rows are computed.
    @F.udf("string")
    def wait(word: str) -> str:
        started.touch()
        for _ in range(600):
            if go_on.exists():
                return word
            time.sleep(0.1)
        raise TimeoutError

    frame = lab.frame.select("value.id", wait("value.word").alias("word"))
    query: Any = to_delta(frame, lab.table, checkpoint=lab.checkpoint, trigger=ONCE)
    first_run = query.runId
    for _ in range(600):
        if started.exists():
            break
        time.sleep(0.1)
    lab.spark.sql(f"ALTER TABLE delta.`{lab.table}` SET TBLPROPERTIES ('a' = 'b')")
    go_on.touch()
    query.awaitTermination()

    assert lab.spark.read.format("delta").load(str(lab.table)).count() == 20
    line = f"table: Another job committed to {lab.table} at the same time. Trying again in 1 s"
    assert [record.getMessage() for record in caplog.records] == [
        f"{line} (try 1, for at most 600 s)"
    ]
    assert query.exception() is None
    assert query.runId != first_run


def test_a_query_is_sparks_own_kind(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    query: Any = to_delta(lab.rows, lab.table, checkpoint=lab.checkpoint)
    try:
        assert isinstance(query, StreamingQuery)
        assert query.isActive
        assert query.awaitTermination(0.1) is False
        query.processAllAvailable()
        assert query.name == "table"
        assert query.lastProgress.batchId == 0
        assert query.exception() is None
        assert query.id in [active.id for active in lab.spark.streams.active]
        with pytest.raises(PipelineError, match="a number of seconds above 0"):
            query.awaitTermination(-1)
    finally:
        query.stop()
    assert not query.isActive
    assert query.awaitTermination(5) is True
    query.awaitTermination()
    query.processAllAvailable()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("by_spark", [False, True], ids=["query.stop()", "Spark's own stop"])
def test_a_query_that_is_stopped_inside_a_batch_has_not_failed(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture, by_spark: bool
) -> None:
    started = tmp_path / "started"

    @F.udf("string")
    def wait(word: str) -> str:
        started.touch()
        time.sleep(1)
        return word

    frame = lab.frame.select(wait("value.word").alias("word"))
    query: Any = to_delta(frame, lab.table, checkpoint=lab.checkpoint, group=f"{lab.name}-delta")
    reporter = REPORTERS[query.id]
    for _ in range(600):
        if started.exists():
            break
        time.sleep(0.1)
    if by_spark:
        lab.spark.streams.get(query.id).stop()
    else:
        query.stop()

    assert query.awaitTermination(60) is True
    assert query.exception() is None
    for _ in range(600):
        if reporter.run.has_ended:
            break
        time.sleep(0.1)
    assert (reporter.run.state, reporter.run.failure) == ("stopped", None)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


SCRIPT = """
import sys, threading, time
from pyspark.sql import functions as F
from ottla.pipelines import PipelineError, session, to_delta, topic

address, name, folder = sys.argv[1:]
spark = session("job", master="local[2]", conf={
    "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False,
})
frame = topic(
    spark, name, bootstrap_servers=address, schema="id BIGINT, word STRING",
    starting={0: 0, 1: 0},
)
rows = frame.select("value.*")
wrong = frame.selectExpr("value.id", "array(1) AS word")
print("started", file=sys.stderr, flush=True)

@F.udf("string")
def raise_always(word):
    raise ValueError("no such word")

to_delta(
    rows, f"{folder}/table", checkpoint=f"{folder}/cp-0", trigger={"availableNow": True}
).awaitTermination()
for number, (bad, target) in enumerate([
    (wrong, f"{folder}/table"),
    (frame.select(raise_always("value.word").alias("word")), f"{folder}/other"),
    (frame.selectExpr("cast(value.word AS INT) AS n"), f"{folder}/third"),
    (rows, "/proc/nowhere/table"),
]):
    try:
        to_delta(
            bad, target, checkpoint=f"{folder}/bad-{number}", trigger={"availableNow": True}
        ).awaitTermination()
    except PipelineError as error:
        print(error, flush=True)
query = to_delta(rows, f"{folder}/table", checkpoint=f"{folder}/cp-1")
query.processAllAvailable()

def report_wait():
    while not query._supervisor.waiters:
        time.sleep(0.1)
    print("ready", flush=True)

threading.Thread(target=report_wait).start()
query.awaitTermination()
"""


def without_end_of_worker(shown: str) -> str:
    """Leave out what PySpark's daemon prints of a worker whose JVM ends between two of its tasks.

    It prints the traceback itself (`pyspark.daemon`), in a process that nothing of ours runs in.
    """
    end = (
        r"Traceback \(most recent call last\):\n"
        r"  File \".*/pyspark/daemon.py\".*\n(?: .*\n)*EOFError\n"
    )
    return re.sub(end, "", shown)


@pytest.mark.timeout(900)
def test_the_screen_stays_empty_and_ctrl_c_is_one_line(
    lab: Lab, tmp_path: Path, state_folder: Path
) -> None:
    # Where a function is made, PySpark 4.2 warns of pandas 3, which is installed here, and of
    # PyArrow, which is not.
    warnings = (
        "PySpark does not yet fully support pandas:FutureWarning",
        "Arrow optimization failed to enable:RuntimeWarning",
    )
    quiet = [word for warning in warnings for word in ("-W", f"ignore:{warning}")]
    process = subprocess.Popen(
        [sys.executable, *quiet, "-c", SCRIPT, lab.bootstrap, lab.name, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = list(itertools.takewhile(lambda line: line != "ready\n", process.stdout))
        # A terminal sends Ctrl-C to all processes of its group, Spark's as well.
        os.killpg(process.pid, signal.SIGINT)
        _, shown = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    refused, *failed = lines
    assert "word is array<int> in the rows and string in the table" in refused
    for line, part in zip(
        failed,
        [
            "raised ValueError: no such word",
            "cannot be cast",
            "cannot write",
        ],
        strict=True,
    ):
        assert part in line
        assert f"(Spark's trace: {state_folder}/traces/" in line
    assert without_end_of_worker(shown.partition("started\n")[2]).splitlines() == [
        "table was stopped by Ctrl-C. The next start continues from the checkpoint"
    ]
    assert process.returncode == -signal.SIGINT  # 130 in a shell
