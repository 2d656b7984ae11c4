"""Computes the state of a Delta table between two commits of one query.

A commit with `txnAppId` looks up the last batch of the query, and Delta rebuilds the table's state
for that at each version (`OptimisticTransaction.txnVersion`, `Snapshot.computedState`): some 40 %
of a small batch. Delta keeps the result in the snapshot of the version, which the next commit
uses. Here a thread asks for it while Spark ends the batch and waits for the next one. A commit that
comes sooner waits for the same result; one that finds a newer version computes its own, as ever.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.delta_log import compute_state
from ottla.pipelines.spark.jvm.sessions import make_active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

_JOB_GROUP: Final = "spark.jobGroup.id"

# One thread for all queries: it has a connection to the JVM of its own.
_THREAD: Final = "ottla-delta-state"
_WORKER: Final = ThreadPoolExecutor(1, _THREAD)


class StateAhead:
    """The latest state of one table, computed ahead; at most one computation at a time."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._running: Future[None] | None = None

    def begin(self, session: SparkSession) -> Future[None]:
        """Begin to compute the state, unless a computation is under way; return the one that is.

        `session` is the one of the commit. The job group of its thread is the computation's too,
        so that stopping the query cancels it.
        """
        if self._running is None or self._running.done():
            group = session.sparkContext.getLocalProperty(_JOB_GROUP)
            self._running = _WORKER.submit(_compute, session, self._location, group)
        return self._running


def _compute(session: SparkSession, location: str, group: str | None) -> None:
    from py4j.protocol import Py4JError

    try:
        make_active(session, _THREAD)
        if group is not None:
            session.sparkContext.setJobGroup(group, f"State of {location}", interruptOnCancel=True)
        compute_state(session, location)
    except (Py4JError, OSError) as error:
        # The query was stopped, or its next commit fails in the same way and says so.
        log.debug("The state of %s was not computed ahead: %s", location, error)
