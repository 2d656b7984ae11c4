"""Keeps a query running: starts it again after failures that pass by themselves, with a limit.

One thread for each query waits for its end. Spark gives up on a broker after about three minutes
of silence, so the thread asks the broker itself when a batch does not move, and logs the answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.cause import Cause, one_line
from ottla.pipelines.failures.known import About, Wait
from ottla.pipelines.failures.retry import Retries, RetryLimits
from ottla.pipelines.failures.sentences import passes_by_itself
from ottla.pipelines.failures.table import BROKER, SCHEMA
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.reported import report, report_exception
from ottla.pipelines.spark.jvm.causes import causes_of, failure_of_query, trace_of
from ottla.pipelines.spark.jvm.failed_ranges import failed_ranges
from ottla.pipelines.spark.jvm.process import process_ended
from ottla.pipelines.spark.jvm.uncaught import keep_off_screen

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

log: Final = logging.getLogger("ottla.pipelines")

POLL_S: Final = 1
# The number of polls without progress after which the broker is asked.
STILL_POLLS: Final = 4
# Spark's status while it waits for the broker or for the tasks that read from it.
_WAITING: Final = ("Getting offsets", "Processing new data")
STOP_WITHIN_S: Final = 20.0
NOT_FOUND: Final = (
    "the records that the failed task was reading could not be found in this version of Spark"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run of the query ended."""

    causes: Sequence[Cause]
    trace: str
    batch: int | None = None
    error: Exception | None = None  # the batch's own exception, where there is one


@dataclass
class Supervisor:
    """One query with all its restarts.

    `start` starts Spark's query, and `check_again` checks before each start but the first that its
    target is as it was; `probe` returns why the broker cannot be read now, None when it
    can; `finish` writes what waits when the query has ended without a failure. `replan` plans the
    query again for data with a new schema, None where that is impossible; `constrain` does so for
    constraints that its target got since, and returns False where there are none; `check_ended`
    raises PipelineError where a query that has ended by itself must not count as complete, and
    `goes_on` tells whether the supervisor then starts it once more, for the rest; `close` closes
    what the query has open, when it has ended for good. `begin` starts both the query and the
    thread.
    """

    start: Callable[[], StreamingQuery]
    guard: BatchGuard
    about: About
    probe: Callable[[], str | None]
    finish: Callable[[], None]
    limits: RetryLimits = field(default_factory=RetryLimits)
    replan: Callable[[], None] | None = None
    close: Callable[[], None] | None = None
    constrain: Callable[[], bool] | None = None
    check_again: Callable[[], None] | None = None
    check_ended: Callable[[], None] | None = None
    goes_on: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        self.ended = threading.Event()
        self.error: PipelineError | None = None
        self.restarts = 0
        self.waiters = 0
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._retries = Retries(self.limits)
        self._batches_seen = 0
        self._still_polls = 0
        self._away_since: float | None = None

    def begin(self) -> None:
        """Start the query and watch it. Raises what Spark raises at a start."""
        from pyspark import InheritableThread

        self.current = self.start()
        keep_off_screen(self.current)
        # On a thread of its own Spark's local properties would be lost at a restart.
        InheritableThread(target=self._run, name=f"ottla-{self.about.query}", daemon=True).start()

    def stop(self, within_s: float | None = None) -> None:
        """Stop the query and wait for its end, at most `within_s`; cancels a pending restart."""
        self._stopping.set()
        if within_s is None:
            self.current.stop()
            self.ended.wait(STOP_WITHIN_S)
        else:
            # Spark may wait for its tasks for as long as they take.
            threading.Thread(target=self.current.stop, daemon=True).start()
            self.ended.wait(within_s)

    def fail(self, reason: str) -> None:
        """End the query as failed; what waits to be written is not written."""
        log.error("%s", reason)
        self.error = PipelineError(reason)
        self.stop()

    def wait_for_change(self, restarts: int, timeout_s: float) -> None:
        """Wait until the query has ended, or was started again since `restarts` restarts."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.ended.is_set() or self.restarts != restarts, timeout_s
            )

    def _run(self) -> None:
        try:
            failure = self._wait()
            while not self._stopping.is_set():
                if failure is None:
                    if self.goes_on is None or not self.goes_on():
                        break
                    failure = self._start_rest()
                elif not self._start_again(failure):
                    break
                else:
                    failure = self._wait()
            if failure is None and self.error is None:
                self._finish()
                self._check_ended()
        except Exception as bug:
            # A bug here must not look like an end without a failure.
            if self.error is None:
                self.error = report_exception(bug, self.about, f"{self.about.query} stopped")
                threading.Thread(target=self.current.stop, daemon=True).start()
            raise
        finally:
            if self.close is not None:
                self.close()
            with self._changed:
                self.ended.set()
                self._changed.notify_all()

    def _start_rest(self) -> Failure | None:
        """Start the query once more, and return why it failed, None when it has ended or was
        stopped.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            self._start_current()
        except (Py4JError, PySparkException, PipelineError, OSError) as error:
            return Failure(causes_of(error), trace_of(error), None, error)
        return self._wait()

    def _start_current(self) -> None:
        self.current = self.start()
        if self._stopping.is_set():
            self.current.stop()  # `stop` may have stopped the run before
        keep_off_screen(self.current)
        self._away_since, self._still_polls = None, 0
        with self._changed:
            self.restarts += 1
            self._changed.notify_all()

    def _finish(self) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            self.finish()
        except (Py4JError, PySparkException, PipelineError, OSError) as error:
            reason = report_exception(error, self.about)
            log.warning(
                "%s has ended; its last rejected rows are not written yet: %s. The next start "
                "writes them",
                self.about.query, str(reason).rstrip("."),
            )  # fmt: skip

    def _check_ended(self) -> None:
        if self.check_ended is None or self._stopping.is_set():
            return
        try:
            self.check_ended()
        except PipelineError as error:
            self.error = error
            if not self.waiters:
                log.error("%s", error)

    def _wait(self) -> Failure | None:
        """Wait for the end of Spark's query; return why it failed, None when it was stopped."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        query = self.current
        try:
            while not query.awaitTermination(POLL_S):
                if self._broker_stayed_away(query):
                    # Spark's own wait for the broker would delay the end.
                    threading.Thread(target=self.current.stop, daemon=True).start()
                    return Failure(
                        [Cause(BROKER.name)], "", None, PipelineError(self._away_words())
                    )
        except (Py4JError, PySparkException, OSError) as error:
            return self._failure_of(query, error)
        return None

    def _failure_of(self, query: StreamingQuery, error: Exception) -> Failure:
        from py4j.protocol import Py4JNetworkError

        try:
            return self._read_failure(query, error)
        except (ConnectionError, Py4JNetworkError) as silence:
            # Spark's process ended while it was asked why the query failed.
            ended = process_ended(is_silent=True)
            return Failure([ended] if ended else causes_of(silence), trace_of(silence))

    def _read_failure(self, query: StreamingQuery, error: Exception) -> Failure:
        from py4j.protocol import Py4JError, Py4JNetworkError

        own = self.guard.error
        # A batch that was under way when the process ended knows of a lost connection only.
        is_silent = isinstance(own or error, ConnectionError | Py4JNetworkError)
        if not isinstance(own, PipelineError) and (ended := process_ended(is_silent=is_silent)):
            return Failure([ended], trace_of(own or error))
        if own:
            return Failure(causes_of(own), trace_of(own), self.guard.batch, own)
        try:
            found = failure_of_query(query)
        except (Py4JError, OSError):
            found = None
        causes, trace = found or (causes_of(error), trace_of(error))
        return Failure(causes, trace)

    def _start_again(self, failure: Failure) -> bool:
        """Restart the query if that may help; False when the supervisor gave up or was stopped."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if self.guard.batches_done != self._batches_seen:
            self._batches_seen = self.guard.batches_done
            self._retries.progressed()
        away: str | None = None
        while True:
            kind = passes_by_itself(failure.causes, self.about.failures)
            if kind == SCHEMA and self.replan is None:
                kind = None
            if kind is not None and kind.rejects_rows and not self._constrain():
                kind = None
            wait_s = None if kind is None else self._retries.next_wait(kind, time.monotonic())
            if kind is None or wait_s is None:
                self._give_up(failure)
                return False
            log.warning(
                "%s: %s. Trying again in %.0f s (try %d, for at most %.0f s)",
                self.about.query, (away or self._reason(kind)).rstrip("."), wait_s,
                self._retries.tries, self.limits.max_elapsed_s,
            )  # fmt: skip
            if self._stopping.wait(wait_s):
                return False
            away = self.probe() if kind.asks_brokers else None
            if away:
                continue
            if self._stopping.is_set():
                return False
            self.guard.clear()
            try:
                if kind == SCHEMA and self.replan is not None:
                    self.replan()
                if self.check_again is not None:
                    self.check_again()
                self._start_current()
            except (Py4JError, PySparkException, PipelineError, OSError) as again:
                failure = Failure(causes_of(again), trace_of(again), None, again)
                continue
            return True

    def _constrain(self) -> bool:
        """Plan the query again for new constraints; False where there are none, or none is read."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return self.constrain is not None and self.constrain()
        except (Py4JError, PySparkException, PipelineError, OSError) as error:
            log.warning(
                "%s: the constraints of %s cannot be read: %s",
                self.about.query, self.about.target, one_line(str(error)),
            )  # fmt: skip
            return False

    def _reason(self, kind: Wait) -> str:
        """Return why the query is started again, in a few words."""
        about = self.about
        return kind.reason.format(
            servers=about.servers, target=about.target, topics=", ".join(about.topics)
        )

    def _give_up(self, failure: Failure) -> None:
        at = "" if failure.batch is None else f" in batch {failure.batch}"
        before, after = f"{self.about.query} stopped{at}", ""
        if tries := self._retries.tries:
            minutes = self._retries.elapsed(time.monotonic()) / 60
            after = f"Gave up after {tries} tries in {minutes:.1f} min"
        ranges = ""
        try:
            ranges = self._failed_ranges(failure)
        finally:  # a bug there must not hide the failure
            self._end_with(failure, replace(self.about, ranges=ranges), before, after)

    def _end_with(self, failure: Failure, about: About, before: str, after: str) -> None:
        if failure.error is not None:
            self.error = report_exception(failure.error, about, before, after)
        else:
            self.error = report(failure.causes, failure.trace, about, before, after)
        if not self.waiters:
            # No caller waits for the query, so only the log can report its end.
            log.error("%s", self.error)

    def _failed_ranges(self, failure: Failure) -> str:
        """Return which records the failed task was reading, "" where that is not known."""
        from py4j.protocol import Py4JError

        # Without an exception of its own the batch failed before it was written. Any other
        # exception is of a start, and `current` is a run before it.
        own = failure.error is not None and failure.error is self.guard.error
        if process_ended() or not (own or failure.error is None):
            return ""
        try:
            return failed_ranges(self.current, self.guard.frame)
        except Py4JError as error:
            log.error("%s: %s: %s", self.about.query, NOT_FOUND, one_line(str(error)))
            return ""

    def _broker_stayed_away(self, query: StreamingQuery) -> bool:
        """Ask the broker when a batch does not move; True when it was away for too long."""
        busy = str(query.status["message"]).startswith(_WAITING)
        moved = self.guard.batches_done != self._batches_seen
        self._batches_seen = self.guard.batches_done
        if moved:
            self._retries.progressed()
            self._answers_again()
        self._still_polls = self._still_polls + 1 if busy and not moved else 0
        if self._still_polls < STILL_POLLS:
            return False
        self._still_polls = 0
        away = self.probe()
        now = time.monotonic()
        if away is None:
            self._answers_again()
            return False
        if self._away_since is None:
            self._away_since = now
            log.warning(
                "%s: %s. Waiting for it, at most %.0f s",
                self.about.query, away.rstrip("."), self.limits.max_elapsed_s,
            )  # fmt: skip
        return now - self._away_since >= self.limits.max_elapsed_s

    def _answers_again(self) -> None:
        """The broker answers, or a batch ended: log it if the broker had not answered."""
        if self._away_since is not None:
            log.warning("%s: %s answers again", self.about.query, self.about.servers)
        self._away_since = None

    def _away_words(self) -> str:
        return (
            f"{self.about.query} stopped: {self.about.servers} did not answer for "
            f"{self.limits.max_elapsed_s:.0f} s. Start it: the next start continues from the "
            "checkpoint"
        )
