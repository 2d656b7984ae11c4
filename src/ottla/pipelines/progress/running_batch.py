"""How far Spark has come with the batch that a query runs: its own count of stages and tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import StatusTracker

MAX_JOBS: Final = 10
"""Of how many of its newest jobs a query is asked; one of them or a few run."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """The stages that have begun of the jobs that run now, and their tasks."""

    stages: int
    stages_done: int
    tasks: int
    tasks_done: int

    def line(self) -> str:
        """Return it as one line without a full stop."""
        line = f"{self.tasks_done:,} of {self.tasks:,} tasks done"
        return line if self.stages == 1 else f"{line}, {self.stages_done} of {self.stages} stages"


def read_running_batch(tracker: StatusTracker, run_id: str) -> RunningBatch | None:
    """Return how far the jobs of a query have come, None where none of them runs.

    Spark runs the jobs of a query in a group that has the name of the query's run. A stage whose
    result is known from another job is skipped: it never begins.
    """
    counts: list[tuple[int, int]] = []
    for job_id in sorted(tracker.getJobIdsForGroup(run_id))[-MAX_JOBS:]:
        job = tracker.getJobInfo(job_id)
        if job is None or job.status != "RUNNING":
            continue
        for stage_id in job.stageIds:
            stage = tracker.getStageInfo(stage_id)
            if stage is not None and stage.numActiveTasks + stage.numCompletedTasks:
                counts.append((stage.numTasks, stage.numCompletedTasks))
    if not counts:
        return None
    return RunningBatch(
        stages=len(counts),
        stages_done=sum(tasks == done for tasks, done in counts),
        tasks=sum(tasks for tasks, _ in counts),
        tasks_done=sum(done for _, done in counts),
    )
