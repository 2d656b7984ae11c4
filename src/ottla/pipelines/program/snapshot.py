"""The state of one pipeline of a session at one moment. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.offset_metadata import Run
from ottla.pipelines.progress.running_batch import RunningBatch
from ottla.pipelines.progress.status import Lag


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One pipeline at one moment; `run` and `latest` are None before its query has started."""

    pipeline: str
    run: Run | None = None
    latest: Delivered | None = None
    lag: Lag | None = None
    failure: str | None = None  # why it did not start
    inside: RunningBatch | None = None  # how far the batch under way has come

    @property
    def state(self) -> str:
        if self.failure is not None:
            return "failed"
        return "starting" if self.run is None else self.run.state

    @property
    def reason(self) -> str | None:
        """Why it failed or is tried again."""
        return self.failure or (self.run.failure if self.run else None)

    @property
    def mark(self) -> tuple[object, ...]:
        """Changes when there is something new to show: a batch, a state, a reason."""
        batch = self.latest.batch if self.latest else None
        return (self.state, self.reason, batch, self.run.rows if self.run else None)
