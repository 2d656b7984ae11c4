"""Runs a MERGE on a Delta table: one commit, which carries its batch as an append does.

MERGE takes no options, so query id, batch and metadata are settings of the session in which it
runs. Nothing else may write with that session: a commit by another thread would carry them as well.
The batches of a stream have such a session; of the user's own session a copy is taken.

Delta skips a batch that the table has. The id is always given: a merge that changes no row makes no
commit without it.

A history has two statements: a shorter one for batches in order, and one for all batches, which
follows if the first finds a late record. Until then nothing has been written. One that tracks
columns or ignores nulls has a statement of its own (`tracked_statement`).

Another job may change the table at the same time: then the statement is run again (`busy_table`).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from ottla.pipelines.locations import shown_location
from ottla.pipelines.sinks.delta.busy_table import tried_again
from ottla.pipelines.sinks.delta.history_statement import history_statement
from ottla.pipelines.sinks.delta.in_order_statement import OUT_OF_ORDER, in_order_statement
from ottla.pipelines.sinks.delta.tracked_statement import tracked_statement
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.jvm.sessions import broadcast_limit_bytes, copied, is_same
from ottla.pipelines.spark.session_settings import KEEPS_VALUES, settings_of
from ottla.pipelines.target.delta_table import DeltaTable, forget_last_commit, last_commit
from ottla.pipelines.target.upsert_statement import upsert_statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.sinks.delta.batch_order import BatchOrder
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch

_QUERY: Final = "spark.databricks.delta.write.txnAppId"
_BATCH: Final = "spark.databricks.delta.write.txnVersion"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_BROADCAST: Final = "spark.sql.autoBroadcastJoinThreshold"
_ADAPTIVE_BROADCAST: Final = "spark.sql.adaptive.autoBroadcastJoinThreshold"
_ROWS_KEPT: Final = "spark.databricks.delta.merge.materializeSource.rddStorageLevel"

MAX_BROADCAST_FILES_BYTES: Final = 1 << 20
"""A table is sent to all tasks for its estimate alone up to this size of its files."""


def merge(
    frame: DataFrame,
    keyed: KeyedTable,
    location: str,
    batch: Batch,
    users: SparkSession,
    order: BatchOrder,
) -> int | None:
    """Merge a batch into a table; None when the table has it already.

    `users` is the user's session. `order` says of a history which statement to begin with.
    """
    view = f"ottla_batch_{secrets.token_hex(8)}"
    # A history may read the batch more than once, and Spark would count its rows each time.
    cached = frame.persist() if keyed.history or keyed.ignore_nulls else None
    own = frame.sparkSession
    session = copied(own) if is_same(own, users) else own
    table = DeltaTable(session, location)

    def write() -> int | None:
        forget_last_commit(session)
        if not keyed.history:
            place = None if batch.truncation is None else batch.truncation.sql
            session.sql(upsert_statement(keyed, f"delta.{quoted(location)}", view, place))
        elif keyed.track or keyed.ignore_nulls:
            session.sql(tracked_statement(keyed, location, view))
        elif not _merge_in_order(session, in_order_statement(keyed, location, view), order):
            frame.count()  # now Spark knows how large it is, and whether to send it to all
            session.sql(history_statement(keyed, location, view))
        return last_commit(session)

    def find() -> int | None:
        held = table.writers().get(batch.query_id, -1) >= batch.number
        return table.find(batch.query_id, batch.number) if held else None

    def keep_rows() -> None:
        """Let all further tries share one more reading, and forget what the first one counted."""
        nonlocal cached
        if cached is None:
            batch.forget_counted()
            cached = frame.persist()

    try:
        frame.createOrReplaceTempView(view)
        with settings_of(session, _settings(session, batch)):
            shown = f"batch {batch.number} of {shown_location(location)}"
            return tried_again(write, find, keep_rows, shown)
    finally:
        frame.sparkSession.catalog.dropTempView(view)
        if cached is not None:
            cached.unpersist()


def _merge_in_order(session: SparkSession, statement: str, order: BatchOrder) -> bool:
    """Run the shorter statement of a history; False if it was not expected to succeed, or failed
    for a late record."""
    if not order.expects_order():
        return False
    from pyspark.errors import UnsupportedOperationException

    try:
        session.sql(statement)
    except UnsupportedOperationException as error:
        if error.getCondition() != OUT_OF_ORDER:
            raise
        order.was_late()
        return False
    order.was_in_order()
    return True


def _settings(session: SparkSession, batch: Batch) -> dict[str, str]:
    """Return what gives a batch's id and metadata to the commits, plans its joins safely, and keeps
    its rows in memory while there is room.

    Spark estimates a table by the size of its files. Compressed rows can be a hundred times larger
    in memory: a table of 12 MB that was sent to all tasks did not fit into 1 GB. So only a small
    table is sent for its estimate; for others Spark compares what it has measured with the limit.
    """
    limit = session.conf.get(_ADAPTIVE_BROADCAST, None) or session.conf.get(_BROADCAST)
    return {
        _QUERY: batch.query_id,
        _BATCH: str(batch.number),
        _METADATA: batch.metadata,
        _BROADCAST: str(min(broadcast_limit_bytes(session), MAX_BROADCAST_FILES_BYTES)),
        _ADAPTIVE_BROADCAST: str(limit),
        # A MERGE reads the rows of the batch three times. Delta keeps them on disk, and makes each
        # of them again for each reading.
        _ROWS_KEPT: session.conf.get(_ROWS_KEPT, None) or "MEMORY_AND_DISK",
        **KEEPS_VALUES,
    }
