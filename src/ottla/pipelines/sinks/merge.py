"""Runs a MERGE on a Delta table: one commit, which carries its batch as an append does.

MERGE takes no options, so query id, batch and metadata are settings of the session in which it
runs. That session is a copy that nothing else writes with: a commit by another thread in the
user's own session would carry them as well. Delta skips a batch that the table has. The id is
always given: a merge that changes no row makes no commit without it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.sinks.delta_table import forget_last_commit, last_commit
from ottla.pipelines.sinks.history_statement import history_statement
from ottla.pipelines.sinks.upsert_statement import upsert_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.sinks.keyed_table import KeyedTable
    from ottla.pipelines.sinks.port import Batch

_QUERY: Final = "spark.databricks.delta.write.txnAppId"
_BATCH: Final = "spark.databricks.delta.write.txnVersion"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"


def merge(frame: DataFrame, keyed: KeyedTable, location: str, batch: Batch) -> int | None:
    """Merge a batch into a table; None when the table has it already."""
    view = f"ottla_batch_{secrets.token_hex(8)}"
    # A history reads the batch twice, and Spark would count its rows twice.
    cached = frame.persist() if keyed.history else None
    try:
        if cached is not None:
            cached.count()  # now Spark knows how large it is, and whether to send it to all tasks
        frame.createOrReplaceTempView(view)
        session = copied(frame.sparkSession)
        session.conf.set(_QUERY, batch.query_id)
        session.conf.set(_BATCH, str(batch.number))
        session.conf.set(_METADATA, batch.metadata)
        forget_last_commit(session)
        statement = history_statement if keyed.history else upsert_statement
        session.sql(statement(keyed, location, view))
        return last_commit(session)
    finally:
        frame.sparkSession.catalog.dropTempView(view)
        if cached is not None:
            cached.unpersist()


def copied(session: SparkSession) -> SparkSession:
    """Return a session with the same settings and views, and none of its later ones."""
    java: Any = session._jsparkSession
    return type(session)(session.sparkContext, java.cloneSession())
