"""One pipeline of a session: its query, its state, its lag and its failure."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from ottla.pipelines.errors import MostlyRejectedError, PipelineError
from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.query_reporter import QueryReporter
from ottla.pipelines.progress.report import REPORTERS
from ottla.pipelines.progress.running_batch import RunningBatch, read_running_batch
from ottla.pipelines.progress.starting_run import StartingRun
from ottla.pipelines.progress.status import LagReader
from ottla.pipelines.spec.pipeline import PipelineSpec


class Pipeline:
    """One pipeline of the session, whatever state it is in."""

    def __init__(self, spec: PipelineSpec) -> None:
        self.spec = spec
        self.query: Any = None
        self.reporter: QueryReporter | None = None
        self.failure: str | None = None
        self._has_rejected_most = False
        self._inside: RunningBatch | None = None
        self._was_inside = False
        self._asked: Snapshot | None = None
        """The run and its last batch as they were when the lag after them was asked for."""
        kafka = spec.source.kafka.for_librdkafka()
        self.starting = StartingRun(kafka, spec.delivery.group, spec.source.topic, spec.name)

    def start(self, spark: Any) -> None:
        """Start the query. Raises PipelineError, and what Spark or a bug raises."""
        from ottla.pipelines.file.build import start_pipeline

        self.query = start_pipeline(spark, self.spec, self.starting.run)
        self.reporter = REPORTERS[str(self.query.id)]
        self.starting.handed_over(self.reporter.committer)

    def stop(self, by: str) -> None:
        """Stop the query if it runs; `by` says who wanted that."""
        if self.query is None or not self.query.isActive:
            return
        if self.reporter is None:  # its start came no further than the query
            self.query.stop()
        else:
            self.reporter.stop(by)

    def finish(self) -> None:
        """Commit the end of a query that has ended."""
        if self.reporter is not None:
            self.reporter.finish()

    def fail(self, failure: PipelineError) -> None:
        """Keep the first failure; report it where the query has no reporter."""
        if self.failure is None:
            self.failure = str(failure)
            self._has_rejected_most = isinstance(failure, MostlyRejectedError)
        self.starting.end("failed", failure=self.failure)

    @property
    def is_running(self) -> bool:
        return self.failure is None and self.query is not None and self.query.isActive

    def snapshot(self) -> Snapshot:
        """The last batch whose lag is known, so that both belong together; but a new state at once,
        with an unknown lag if there was another batch.
        """
        return replace(self._with_lag(), inside=self._inside if self.is_running else None)

    def _with_lag(self) -> Snapshot:
        now, asked = self._now(), self._asked
        if asked is None:
            return now
        if (asked.state, asked.reason) == (now.state, now.reason):
            return asked
        return replace(now, lag=asked.lag) if asked.latest is now.latest else now

    def _now(self) -> Snapshot:
        reporter = self.reporter
        run = reporter.run if reporter else None
        latest = reporter.latest if reporter else None
        return Snapshot(self.spec.name, run, latest, failure=self.failure or self._query_failure())

    def _query_failure(self) -> str | None:
        """Why the query has ended. It knows best: the report of its end may come late."""
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        return None if error is None else str(error)

    @property
    def has_new_batch(self) -> bool:
        """Whether a batch was reported whose lag was not asked for."""
        latest = self.reporter.latest if self.reporter else None
        return latest is not None and (self._asked is None or self._asked.latest is not latest)

    def read_lag(self, reader: LagReader) -> None:
        """Ask the brokers for the lag after the last batch that was reported."""
        now = self._now()
        if now.latest is None:
            return
        offsets = {
            (topic, partition): offset
            for topic, partitions in now.latest.offsets.items()
            for partition, offset in partitions.items()
        }
        try:
            self._asked = replace(now, lag=reader.read(offsets))
        except GroupError:
            self._asked = now  # the lag is shown as not known

    def read_inside(self, spark: Any) -> None:
        """Ask Spark how far the batch under way has come; it may have ended meanwhile."""
        from py4j.protocol import Py4JError

        found = None
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            if self.is_running:
                tracker = spark.sparkContext.statusTracker()
                found = read_running_batch(tracker, str(self.query.runId))
        # A line for each small batch would flicker: only what still runs at the next look is shown.
        self._inside = found if self._was_inside else None
        self._was_inside = found is not None

    def forget_lag(self) -> None:
        """Show it as not known."""
        self._asked = None

    @property
    def has_failed(self) -> bool:
        return self.snapshot().state == "failed"

    @property
    def has_rejected_most(self) -> bool:
        """Whether it stopped because its schema fits less than half of the first records."""
        if self.failure is not None or self.query is None or self.query.isActive:
            return self._has_rejected_most
        return isinstance(self.query.exception(), MostlyRejectedError)
