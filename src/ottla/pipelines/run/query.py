"""`PipelineQuery`: Spark's StreamingQuery, whose failures are one line, and which is restarted.

Only imported where PySpark is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import MostlyRejectedError, PipelineError
from ottla.pipelines.failures.known import About
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.interrupt import end_quietly, interruptible
from ottla.pipelines.run.reported import reported
from ottla.pipelines.run.supervisor import STOP_WITHIN_S, Supervisor, log
from ottla.pipelines.spark.jvm.current_query import CurrentQuery

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_NEXT_RUN_S: Final = 60.0


class PipelineQuery(CurrentQuery):
    """One query with all its restarts: its id stays, its runId changes.

    `awaitTermination` and `processAllAvailable` raise PipelineError with one line; `exception`
    returns it.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        super().__init__(lambda: supervisor.current)
        self._supervisor = supervisor

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """True while the query runs or waits for its next try."""
        return not self._supervisor.ended.is_set()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait for the end, at most `timeout` seconds; then return whether it has ended.

        Raises PipelineError when the query failed. Ctrl-C stops the query.
        """
        if timeout is not None and (not isinstance(timeout, int | float) or timeout <= 0):
            raise PipelineError(f"timeout={timeout!r}: give a number of seconds above 0, or None")
        self._wait(self._supervisor.ended, timeout)
        self._raise_failure()
        return None if timeout is None else self._supervisor.ended.is_set()

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until what the topic has now is in the table. Raises as awaitTermination does."""
        while self.isActive:
            restarts = self._supervisor.restarts
            done = threading.Event()
            outcome: list[Exception | None] = []
            threading.Thread(target=self._process, args=(done, outcome), daemon=True).start()
            self._wait(done, None)
            assert outcome, "the wait for Spark ended by an error that its thread has printed"
            if outcome == [None]:
                break
            # The supervisor decides whether the query continues.
            self._supervisor.wait_for_change(restarts, _NEXT_RUN_S)
        self._raise_failure()

    def stop(self) -> None:
        """Stop the query, or the wait for its next start."""
        self._supervisor.stop()

    def fail(self, reason: str) -> None:
        """End the query as failed: it must not go on."""
        self._supervisor.fail(reason)

    def exception(self) -> PipelineError | None:
        """Return why the query ended, None while it runs or when it was stopped."""
        return self._supervisor.error

    def _process(self, done: threading.Event, outcome: list[Exception | None]) -> None:
        """Put None into `outcome` when all is processed, or how Spark's query ended before that.

        An error of ours leaves it empty.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            super().processAllAvailable()
            outcome.append(None)
        except (Py4JError, PySparkException, OSError) as error:
            outcome.append(error)
        finally:
            done.set()

    def _wait(self, event: threading.Event, timeout: float | None) -> None:
        """Wait in Python, not in the JVM: Ctrl-C ends this wait at once."""
        self._supervisor.waiters += 1
        try:
            with interruptible():
                event.wait(timeout)
        except KeyboardInterrupt as interrupt:
            self._supervisor.stop(STOP_WITHIN_S)
            log.warning(
                "%s was stopped by Ctrl-C. The next start continues from the checkpoint",
                self._supervisor.about.query,
            )
            end_quietly(interrupt)
            raise
        finally:
            self._supervisor.waiters -= 1

    def _raise_failure(self) -> None:
        error = self._supervisor.error
        if error is not None:
            kind = MostlyRejectedError if isinstance(error, MostlyRejectedError) else PipelineError
            raise kind(str(error))


def supervised(
    start: Callable[[], StreamingQuery],
    guard: BatchGuard,
    about: About,
    probe: Callable[[], str | None],
    finish: Callable[[], None],
    replan: Callable[[], None] | None = None,
    close: Callable[[], None] | None = None,
    constrain: Callable[[], bool] | None = None,
    check_again: Callable[[], None] | None = None,
    check_ended: Callable[[], None] | None = None,
    goes_on: Callable[[], bool] | None = None,
) -> PipelineQuery:
    """Start a query and return it as one that survives failures that pass by themselves.

    `start` starts Spark's query, whose batches `guard` writes; `probe` returns why the broker
    cannot be read now, None when it can; `finish` runs when it has ended without a failure;
    `replan` plans the query again for data with a new schema, and `constrain` for constraints that
    the target got since; `close` runs at its end, whatever that was; `check_again` runs before each
    start but the first, and `check_ended` when the query has ended by itself; `goes_on`
    tells then whether it is started once more.
    Raises PipelineError when the query does not start.
    """
    supervisor = Supervisor(
        start, guard, about, probe, finish,
        replan=replan, close=close, constrain=constrain, check_again=check_again,
        check_ended=check_ended, goes_on=goes_on,
    )  # fmt: skip
    with reported(about):
        supervisor.begin()
    return PipelineQuery(supervisor)
