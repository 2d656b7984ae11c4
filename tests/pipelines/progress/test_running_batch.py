"""How far Spark has come with a batch."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.pipelines.progress.running_batch import MAX_JOBS, RunningBatch, read_running_batch

WAIT_S = 120.0


class Tracker:
    """Spark's status tracker: jobs by number with state and stages, stages with their tasks."""

    def __init__(
        self, jobs: dict[int, tuple[str, list[int]]], stages: dict[int, tuple[int, int, int]]
    ) -> None:
        self.jobs = jobs
        self.stages = stages
        self.asked: list[int] = []

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802 - Spark's names
        return list(reversed(self.jobs)) if group == "run" else []

    def getJobInfo(self, number: int) -> Any:  # noqa: N802
        self.asked.append(number)
        status, stages = self.jobs[number]
        return None if not status else SimpleNamespace(status=status, stageIds=stages)

    def getStageInfo(self, number: int) -> Any:  # noqa: N802
        if number not in self.stages:
            return None
        tasks, active, done = self.stages[number]
        return SimpleNamespace(numTasks=tasks, numActiveTasks=active, numCompletedTasks=done)


def read(tracker: Tracker, run_id: str = "run") -> RunningBatch | None:
    return read_running_batch(cast("Any", tracker), run_id)


def test_the_stages_that_have_begun_of_the_jobs_that_run() -> None:
    jobs = {1: ("SUCCEEDED", [1]), 2: ("RUNNING", [1, 2, 3, 4, 5]), 3: ("", [])}
    # Stage 1 is skipped, 4 waits, and 5 is forgotten.
    stages = {1: (9, 0, 0), 2: (8, 0, 8), 3: (1_200, 2, 34), 4: (7, 0, 0)}
    found = read(Tracker(jobs, stages))
    assert found == RunningBatch(stages=2, stages_done=1, tasks=1_208, tasks_done=42)
    assert found.line() == "42 of 1,208 tasks done, 1 of 2 stages"
    assert read(Tracker(jobs, stages), "another") is None


def test_one_stage_is_not_counted() -> None:
    found = read(Tracker({1: ("RUNNING", [1])}, {1: (4, 2, 0)}))
    assert found is not None
    assert found.line() == "0 of 4 tasks done"


def test_nothing_runs_between_jobs() -> None:
    assert read(Tracker({}, {})) is None
    assert read(Tracker({1: ("RUNNING", [1])}, {1: (4, 0, 0)})) is None


def test_only_the_newest_jobs_are_asked() -> None:
    tracker = Tracker({number: ("SUCCEEDED", [1]) for number in range(100)}, {})
    assert read(tracker) is None
    assert tracker.asked == [*range(100 - MAX_JOBS, 100)]


@pytest.mark.spark
def test_the_jobs_of_a_batch_are_found_by_the_run_of_their_query(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text("a line\n")
    release = tmp_path / "release"

    def wait(number: int) -> int:
        while number and not release.exists():
            time.sleep(0.05)
        return number

    def write(frame: Any, _batch: int) -> None:
        frame.sparkSession.sparkContext.parallelize(range(2), 2).map(wait).collect()

    lines = spark.readStream.text(str(tmp_path / "in"))
    query = lines.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    try:
        tracker, until = spark.sparkContext.statusTracker(), time.monotonic() + WAIT_S
        wanted = RunningBatch(stages=1, stages_done=0, tasks=2, tasks_done=1)
        while (found := read_running_batch(tracker, str(query.runId))) != wanted:
            assert time.monotonic() < until, found
            time.sleep(0.05)
    finally:
        release.touch()
        query.awaitTermination(WAIT_S)
        query.stop()
    while read_running_batch(tracker, str(query.runId)) is not None:
        assert time.monotonic() < until
        time.sleep(0.05)
