"""Computes the state of a Delta table between two commits of one query.

A commit with `txnAppId` looks up the last batch of the query, and Delta rebuilds the table's state
for that at each version (`OptimisticTransaction.txnVersion`, `Snapshot.computedState`): some 40 %
of a small batch. Delta keeps the result in the snapshot of the version, which the next commit
uses. Here a thread asks for it while Spark ends the batch and waits for the next one. A commit that
comes sooner waits for the same result; one that finds a newer version computes its own, as ever.

It has a copy of the session, in which Spark plans nothing adaptively: that would take two jobs
instead of one, and the session of the batch is planned so while a MERGE runs in it.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.delta_log import compute_state
from ottla.pipelines.spark.jvm.sessions import copied, is_same, make_active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

_JOB_GROUP: Final = "spark.jobGroup.id"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"

# One thread for all queries: it has a connection to the JVM of its own.
_THREAD: Final = "ottla-delta-state"
_WORKER: Final = ThreadPoolExecutor(1, _THREAD)


class StateAhead:
    """The latest state of one table, computed ahead; at most one computation at a time."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._running: Future[None] | None = None
        self._of: SparkSession | None = None
        self._own: SparkSession | None = None  # the copy of it

    def begin(self, session: SparkSession) -> Future[None]:
        """Begin to compute the state, unless a computation is under way; return the one that is.

        `session` is the one of the commit. The job group of its thread is the computation's too,
        so that stopping the query cancels it.
        """
        if self._running is None or self._running.done():
            group = session.sparkContext.getLocalProperty(_JOB_GROUP)
            self._running = _WORKER.submit(self._compute, session, group)
        return self._running

    def _compute(self, session: SparkSession, group: str | None) -> None:
        from py4j.protocol import Py4JError

        words = f"State of {self._location}"
        try:
            own = self._copy_of(session)
            make_active(own, _THREAD)
            if group is not None:
                own.sparkContext.setJobGroup(group, words, interruptOnCancel=True)
            compute_state(own, self._location)
        except (Py4JError, OSError) as error:
            # The query was stopped, or its next commit fails in the same way and says so.
            log.debug("The state of %s was not computed ahead: %s", self._location, error)

    def _copy_of(self, session: SparkSession) -> SparkSession:
        """Return the copy of a session; a query that is started again has another session."""
        if self._own is None or self._of is None or not is_same(self._of, session):
            self._own = copied(session)
            self._own.conf.set(_ADAPTIVE, "false")
            self._of = session
        return self._own
