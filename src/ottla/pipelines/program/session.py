"""Runs the pipelines of a file: Spark in a thread, the view and the signals in the main one.

A first Ctrl-C or SIGTERM stops the queries and commits their end; a second one ends at once.

An exception that leaves a thread ends the thread alone, and the process would go on to end with 0.
So the threads keep every exception, whatever its type: it is the failure of its pipeline or of the
session. Its traceback is in a file that the failure's line names.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.known import About
from ottla.pipelines.kafka.brokers import ClusterState
from ottla.pipelines.program.ending import Ending
from ottla.pipelines.program.notices import collect_log
from ottla.pipelines.program.pipeline import Pipeline
from ottla.pipelines.program.process import end_at_once, kill_spark, stop_spark
from ottla.pipelines.program.sample import check_newest
from ottla.pipelines.program.view import View
from ottla.pipelines.progress.status import LagReader
from ottla.pipelines.run.reported import report_exception
from ottla.pipelines.spec.pipeline import FileSpec

TICK_S: Final = 0.25
LAG_S: Final = 2.0
INSIDE_S: Final = 0.5
"""How often a terminal shows how far a batch has come."""
SIGNAL_S: Final = 0.5
STOP_S: Final = 30.0
"""How long the queries may take to stop; then the process ends anyway."""


class Session:
    """The pipelines of one file in one Spark session."""

    def __init__(
        self,
        spec: FileSpec,
        view: View,
        clusters: Sequence[ClusterState] = (),
        *,
        spark_settings: Mapping[str, object] = MappingProxyType({}),
        spark_log: Path | None = None,
    ) -> None:
        """`clusters`: those of the pipelines' topics, whose newest records are checked.

        `spark_log`: the file that has what Spark writes.
        """
        self.spec = spec
        self.view = view
        self._clusters = clusters
        self._spark_settings = spark_settings
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

    def run(self) -> Ending:
        """Run until all pipelines have ended.

        Raises PipelineError if there was no session, and what the view raises.
        """
        with self._signals(), collect_log(self._lines):
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
            raise PipelineError(self.failure)
        return self._ending()

    def _ending(self) -> Ending:
        failed = [pipeline for pipeline in self.pipelines if pipeline.has_failed]
        if self.failure is None and failed and all(one.has_rejected_most for one in failed):
            return Ending.REJECTED
        if self.failure is not None or failed:
            return Ending.FAILED
        return Ending.INTERRUPTED if self.signal == signal.SIGINT else Ending.DONE

    def _show_until_end(self) -> None:
        stop_by: float | None = None
        while not self._has_ended.wait(TICK_S):
            self._tell()
            self.view.show([pipeline.snapshot() for pipeline in self.pipelines])
            if self._is_stopping.is_set() and not self._has_session.is_set():
                # Nothing runs yet: there is no end to wait for.
                self._end_starts()
                self.view.close([pipeline.snapshot() for pipeline in self.pipelines])
                end_at_once(self._ending())
            if self._is_stopping.is_set():
                stop_by = stop_by or time.monotonic() + STOP_S
                if time.monotonic() > stop_by:
                    self.view.tell(f"The queries have not stopped within {STOP_S:g} s.")
                    end_at_once(Ending.FAILED)
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
        its_log = "" if self._spark_log is None else f"; its log is {self._spark_log}"
        self._lines.append(f"Starting Spark{its_log}")
        self._spark = open_session(self.spec, conf=self._spark_settings)
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
                is_ctrl_c = number == signal.SIGINT
                end_at_once(Ending.INTERRUPTED if is_ctrl_c else Ending.FAILED)
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
        sink = pipeline.spec.sink
        about = About(query=pipeline.spec.name, target=sink.target, failures=sink.failures)
    return report_exception(error, about)


def follows_from_a_signal(error: BaseException) -> bool:
    """Whether Spark's end can be the reason of an exception: py4j has lost its connection."""
    from py4j.protocol import Py4JError

    return isinstance(error, PipelineError | Py4JError | OSError)
