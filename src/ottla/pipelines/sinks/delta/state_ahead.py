"""Has the state of a Delta table ready for the next commit of one query.

A commit with `txnAppId` looks up the last batch of the query, and Delta rebuilds the table's state
for that at each version (`OptimisticTransaction.txnVersion`, `Snapshot.computedState`): half of a
small batch. All that it needs is in the checksum that Delta has derived for the version. Here the
snapshot, which the next commit uses, gets it from there, if the checksum names the batch that this
run has committed or found. A commit that finds a newer version, which others made, rebuilds the
state as ever.

Where there is no such checksum, a thread can compute the state while Spark ends the batch and waits
for the next one. A commit that comes sooner waits for the same result. The thread has a copy of the
session, in which Spark plans nothing adaptively: that would take two jobs instead of one, and the
session of the batch is planned so while a MERGE runs in it.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.compiled import has_compiler, new_object
from ottla.pipelines.spark.jvm.delta_log import committed_snapshot, empty_snapshot
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
    """The latest state of one table, ready ahead; at most one computation at a time."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._running: Future[None] | None = None
        self._of: SparkSession | None = None
        self._own: SparkSession | None = None  # the copy of it
        self._is_first = True
        self._known: Any = None  # a KnownTransactions, False if this Delta has no place for them

    def prepare(self, session: SparkSession, query_id: str, batch: int) -> None:
        """Prepare the commit after a batch. A run of one batch has none: nothing is computed."""
        is_first, self._is_first = self._is_first, False
        if not self.give(session, query_id, batch) and not is_first:
            self.compute(session)

    def give(self, session: SparkSession, query_id: str, last: int | None) -> bool:
        """Give the latest snapshot the last batch of the query; None: it has none in the table.

        False: it was not given. The table may say another batch, or nothing.
        """
        from py4j.protocol import Py4JError

        try:
            if self._known is None:
                self._known = self._learned(session)
            if not self._known:
                return False
            snapshot = committed_snapshot(session, self._location)
            return bool(self._known.give(snapshot, query_id, -1 if last is None else last))
        except (Py4JError, OSError) as error:
            # The next commit fails in the same way and says so.
            log.debug("The last batch in %s was not looked up ahead: %s", self._location, error)
            return False

    def _learned(self, session: SparkSession) -> Any:
        if not has_compiler(session):
            return False
        empty = empty_snapshot(session, self._location)
        return False if empty is None else new_object(session, "KnownTransactions", empty)

    def compute(self, session: SparkSession) -> Future[None]:
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
            committed_snapshot(own, self._location).transactions()
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
