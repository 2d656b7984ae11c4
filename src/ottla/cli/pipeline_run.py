"""`ottla pipeline run`: Spark in a thread, the screen and the signals in the main one.

A first Ctrl-C or SIGTERM stops the queries and commits their end; a second one ends at once.
Exit codes: 0 all have ended by themselves or were asked to stop (SIGTERM, `ottla pipeline stop`),
1 one of them failed, 3 each that failed has stopped because most of its first batch
is rejected, 130 Ctrl-C.

An exception that leaves a thread ends the thread alone, and the process would go on to end with 0.
So the threads keep every exception, whatever its type: it is the failure of its pipeline or of the
session. Its traceback is in a file that the failure's line names.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_REJECTED, Failed
from ottla.cli.pipeline_broker import look_up_topic
from ottla.cli.pipeline_output import SPARK_SETTINGS, SparkOutput
from ottla.cli.pipeline_sample import check_newest
from ottla.cli.pipeline_snapshot import Snapshot
from ottla.cli.pipeline_view import TellLog, View, open_view
from ottla.pipelines.errors import MostlyRejectedError, PipelineError
from ottla.pipelines.file.specification import FileSpec, PipelineSpec
from ottla.pipelines.identity.lease import taken_here
from ottla.pipelines.kafka.brokers import ClusterState
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.report import REPORTERS, QueryReporter
from ottla.pipelines.progress.running_batch import RunningBatch, read_running_batch
from ottla.pipelines.progress.starting import StartingRun
from ottla.pipelines.progress.status import LagReader
from ottla.pipelines.run.failures import About
from ottla.pipelines.run.report import report_exception

TICK_S: Final = 0.25
LAG_S: Final = 2.0
INSIDE_S: Final = 0.5
"""How often a terminal shows how far a batch has come."""
SIGNAL_S: Final = 0.5
STOP_S: Final = 30.0
"""How long the queries may take to stop; then the process ends anyway."""


def run_file(spec: FileSpec, log: Path | None, *, as_json: bool) -> int:
    """Run all pipelines of a file; returns the exit code. Raises Failed before anything runs."""
    clusters = []
    for pipeline in spec.pipelines:
        clusters.append(look_up_topic(pipeline))
        if taken := taken_here(Path(pipeline.delivery.checkpoint.removeprefix("file:"))):
            raise Failed(f"{pipeline.name}: {taken}.")
    with SparkOutput(spec.file.stem, log) as output:
        return Session(spec, open_view(as_json=as_json), clusters, output.file).run()


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
            for topic, places in now.latest.offsets.items()
            for partition, offset in places.items()
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


class Session:
    """The pipelines of one file in one Spark session."""

    def __init__(
        self,
        spec: FileSpec,
        view: View,
        clusters: Sequence[ClusterState] = (),
        spark_log: Path | None = None,
    ) -> None:
        """`clusters`: those of the pipelines' topics, whose newest records are checked."""
        self.spec = spec
        self.view = view
        self._clusters = clusters
        self._spark_log = spark_log
        self.pipelines = [Pipeline(pipeline) for pipeline in spec.pipelines]
        self.signal: int | None = None
        self.failure: str | None = None  # why there is no session
        self._spark: Any = None
        self._is_stopping = threading.Event()
        self._has_session = threading.Event()
        self._has_ended = threading.Event()
        self._queries_have_ended = threading.Event()
        self._lag_watches = [
            threading.Thread(target=self._watch_lag, args=(one,), name="lag", daemon=True)
            for one in self.pipelines
        ]
        self._lines: list[str] = []

    def run(self) -> int:
        """Run until all pipelines have ended; returns the exit code."""
        with self._signals(), told_log(self._lines):
            for watch in self._lag_watches:
                watch.start()
            if self.view.shows_inside:
                threading.Thread(target=self._watch_inside, name="inside", daemon=True).start()
            threading.Thread(target=self._work, name="pipelines", daemon=True).start()
            try:
                self._show_until_end()
            except BaseException:
                # The reader of the output has gone, or a bug: the queries still end in order.
                self._is_stopping.set()
                if not self._has_session.is_set() or not self._has_ended.wait(STOP_S):
                    self._end_starts()
                    kill_spark()
                raise
        self._end_starts()
        if self.failure is not None:
            raise Failed(self.failure)
        return self._exit_code()

    def _exit_code(self) -> int:
        failed = [pipeline for pipeline in self.pipelines if pipeline.has_failed]
        if self.failure is None and failed and all(one.has_rejected_most for one in failed):
            return EXIT_REJECTED
        if self.failure is not None or failed:
            return EXIT_FAILED
        return EXIT_INTERRUPTED if self.signal == signal.SIGINT else 0

    def _show_until_end(self) -> None:
        stop_by: float | None = None
        while not self._has_ended.wait(TICK_S):
            self._tell()
            self.view.show([pipeline.snapshot() for pipeline in self.pipelines])
            if self._is_stopping.is_set() and not self._has_session.is_set():
                # Nothing runs yet: there is no end to wait for.
                self._end_starts()
                self.view.close([pipeline.snapshot() for pipeline in self.pipelines])
                end_at_once(self._exit_code())
            if self._is_stopping.is_set():
                stop_by = stop_by or time.monotonic() + STOP_S
                if time.monotonic() > stop_by:
                    self.view.tell(f"The queries have not stopped within {STOP_S:g} s.")
                    end_at_once(EXIT_FAILED)
        self._tell()
        self.view.close([pipeline.snapshot() for pipeline in self.pipelines])

    def _tell(self) -> None:
        while self._lines:
            self.view.tell(self._lines.pop(0))

    def _work(self) -> None:
        """Start Spark and the queries, wait for their end, and stop Spark."""
        try:
            with self._kept():
                self._start()
                while not self._is_stopping.wait(TICK_S):
                    if not any(one.is_running for one in self.pipelines):
                        break
            # Also where the start failed: a query that runs has an end to commit.
            self._stop_queries()
            self._queries_have_ended.set()
            with self._kept():
                if self._spark is not None:
                    stop_spark(self._spark)
            self._end_lag_watches()
        finally:
            self._queries_have_ended.set()
            self._has_ended.set()

    def _start(self) -> None:
        from ottla.pipelines.file.build import open_session

        self._check_newest()
        if all(one.failure is not None for one in self.pipelines):
            return
        self._lines.append(f"Starting Spark; its log is {self._spark_log}")
        self._spark = open_session(self.spec, conf=SPARK_SETTINGS)
        self._has_session.set()
        for pipeline in self.pipelines:
            if self._is_stopping.is_set():
                break
            if pipeline.failure is None:
                with self._kept(pipeline):
                    pipeline.start(self._spark)

    def _check_newest(self) -> None:
        """Parse the newest records: a wrong schema is found before Spark starts."""
        for pipeline, cluster in zip(self.pipelines, self._clusters, strict=False):
            with self._kept(pipeline):
                if line := check_newest(pipeline.spec, cluster):
                    self._lines.append(f"{pipeline.spec.name}: {line}.")

    @contextlib.contextmanager
    def _kept(self, pipeline: Pipeline | None = None) -> Iterator[None]:
        """Keep what ends the block as the failure of its pipeline, else of the session.

        Also SystemExit: a function of a pipeline file that calls `sys.exit` has delivered nothing.
        """
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - kept; the main thread ends with it
            failure = failure_of(error, self.spec, pipeline)
            if follows_from_a_signal(error) and self._ended_by_signal(failure):
                return
            if pipeline is None:
                self.failure = self.failure or str(failure)
            else:
                pipeline.fail(failure)

    def _ended_by_signal(self, error: PipelineError) -> bool:
        """Whether a signal to the whole process group also ended Spark, so that a start failed.

        The handler of this process may run a moment later than Spark ends.
        """
        stopping = self._is_stopping.wait(SIGNAL_S)
        if stopping:
            self._lines.append(str(error))
        return stopping

    @property
    def _by(self) -> str:
        """Who stops the queries."""
        names: dict[int | None, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
        return names.get(self.signal, "the end of its reader")

    def _end_starts(self) -> None:
        """Say of the pipelines whose query has not started how they ended."""
        for pipeline in self.pipelines:
            if self.failure is not None:
                pipeline.starting.end("failed", failure=self.failure)
            else:
                pipeline.starting.end("stopped", by=self._by)

    def _stop_queries(self) -> None:
        by = self._by
        for pipeline in self.pipelines:
            with self._kept(pipeline):
                pipeline.stop(by)
        for pipeline in self.pipelines:
            with self._kept(pipeline):
                pipeline.finish()

    def _watch_lag(self, pipeline: Pipeline) -> None:
        """Ask the brokers for the pipeline's lag after each batch, now and then, and at the end.

        A bug here does not stop the delivery of rows: it is told, and the lag is not known.
        """
        try:
            self._read_lags(pipeline)
        except Exception as error:  # noqa: BLE001 - told in one line that names its traceback
            pipeline.forget_lag()
            failure = failure_of(error, self.spec, pipeline)
            self._lines.append(f"{pipeline.spec.name}: the lag is not known: {failure}")

    def _read_lags(self, pipeline: Pipeline) -> None:
        reader = LagReader(pipeline.spec.source.kafka.for_librdkafka())
        asked_s = time.monotonic()
        while True:
            has_ended = self._queries_have_ended.wait(TICK_S)
            if has_ended or pipeline.has_new_batch or time.monotonic() - asked_s > LAG_S:
                pipeline.read_lag(reader)
                asked_s = time.monotonic()
            if has_ended:
                return

    def _watch_inside(self) -> None:
        """Ask Spark in a thread of its own: the screen does not wait for a JVM that is busy."""
        while not self._queries_have_ended.wait(INSIDE_S):
            if self._has_session.is_set():
                for pipeline in self.pipelines:
                    pipeline.read_inside(self._spark)

    def _end_lag_watches(self) -> None:
        """Wait for the lag at the end; a broker that does not answer leaves it unknown."""
        until_s = time.monotonic() + LAG_S
        for pipeline, watch in zip(self.pipelines, self._lag_watches, strict=True):
            watch.join(max(0.0, until_s - time.monotonic()))
            if watch.is_alive():
                pipeline.forget_lag()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, _frame: FrameType | None) -> None:
            if self.signal is not None:
                end_at_once(EXIT_INTERRUPTED if number == signal.SIGINT else EXIT_FAILED)
            self.signal = number
            self._is_stopping.set()
            self._lines.append("Stopping the queries; again to end at once.")

        before: dict[int, Any] = {
            number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def failure_of(
    error: BaseException, spec: FileSpec, pipeline: Pipeline | None = None
) -> PipelineError:
    """Return an exception of a thread as one line; its traceback is in a file that it names."""
    if pipeline is None:
        about = About(query=spec.file.stem)
    else:
        about = About(query=pipeline.spec.name, target=pipeline.spec.sink.target)
    return report_exception(error, about)


def follows_from_a_signal(error: BaseException) -> bool:
    """Whether Spark's end can be the reason of an exception: py4j has lost its connection."""
    from py4j.protocol import Py4JError

    return isinstance(error, PipelineError | Py4JError | OSError)


@contextlib.contextmanager
def told_log(lines: list[str]) -> Iterator[None]:
    """Collect what Ottla's pipelines log in the block."""
    logger = logging.getLogger("ottla.pipelines")
    handler, before = TellLog(lines), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def stop_spark(spark: Any) -> None:
    """Stop Spark; a signal to the whole process group may have ended it already."""
    from py4j.protocol import Py4JError

    try:
        spark.stop()
    except (Py4JError, OSError):
        kill_spark()


def kill_spark() -> None:
    """End Spark's process, if this one has started it."""
    if "pyspark.core.context" in sys.modules:
        from ottla.pipelines.spark.jvm.process import kill_process

        kill_process()


def end_at_once(code: int, leave: Callable[[int], Any] = os._exit) -> None:
    """End this process and Spark's, without waiting for anything."""
    # A thread that waits for Spark fails now, which is no news.
    threading.excepthook = lambda _: None
    kill_spark()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    leave(code)
