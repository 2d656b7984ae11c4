"""`to_jdbc`: a stream into a table of PostgreSQL; see `sinks.jdbc`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import require_pyspark
from ottla.pipelines.run.failures import About
from ottla.pipelines.run.frame import Written, write_frame
from ottla.pipelines.run.interrupt import interruptible
from ottla.pipelines.run.plan import plan
from ottla.pipelines.run.report import reported
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.start import start
from ottla.pipelines.sinks.jdbc import JdbcSink
from ottla.pipelines.sinks.jdbc_settings import Database, read_database
from ottla.pipelines.sinks.postgres_table import read_table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def to_jdbc(
    df: DataFrame,
    target: str,
    *,
    url: str,
    checkpoint: str | os.PathLike[str],
    user: str | None = None,
    password: str | None = None,
    settings: Mapping[str, Any] | None = None,
    trigger: Mapping[str, Any] | None = None,
    delivery: str = "exactly-once",
    schema_changes: str = "refuse",
    on_lost: str = "stop",
    group: str | None = None,
    max_rejects: int | None = None,
    keys: str | tuple[str, ...] | list[str] = (),
    order_by: str | None = None,
    deletes: str = "remove",
) -> StreamingQuery | Written:
    """Start a query that writes a stream to a table of PostgreSQL, or write a batch frame to it.

    Each batch is one transaction of the database. The rows are appended; with `keys` the table
    has the last row of each key.

    Args:
        df: a streaming frame, such as `topic` gives, or a batch frame.
        target: the table, as `table` or `schema.table`, taken as it is written; a part with a dot
            or a quote in double quotes. It is created if it does not exist.
        url: the database, such as "jdbc:postgresql://localhost:5432/lake", without user and
            password.
        user, password: who logs in; None for what the driver finds by itself (`~/.pgpass`).
        settings: settings of PostgreSQL's JDBC driver, such as {"sslmode": "verify-full"}.
        checkpoint, trigger, delivery, on_lost, group, max_rejects: as for `to_delta`.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them.
        keys: the columns of the key; a new table gets them as its primary key, one that exists
            must have a unique index on them. The frame needs the topic's `partition` and `offset`.
        order_by, deletes: as for `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; a database, brokers, a topic or a checkpoint that do not
            fit together; records that are lost.
    """
    require_pyspark()
    specification = Specification(
        df,
        target,
        checkpoint,
        trigger=trigger,
        delivery=delivery,
        schema_changes=schema_changes,
        on_lost=on_lost,
        group=group,
        max_rejects=max_rejects,
        keys=keys,
        order_by=order_by,
        deletes=deletes,
        caller="to_jdbc",
    )
    database = read_database(url, user, password, settings)
    sink = jdbc_sink(specification, database)
    with interruptible(), reported(About(target=sink.shown, checkpoint=str(checkpoint))):
        return (
            start(plan(specification, sink)) if df.isStreaming else write_frame(specification, sink)
        )


def jdbc_sink(specification: Specification, database: Database) -> JdbcSink:
    """Return the table that a specification names. Raises PipelineError."""
    frame = specification.frame
    return JdbcSink(
        frame.sparkSession,
        database,
        read_table_name(specification.target),
        frame.schema,
        specification.schema_changes,
        specification.keyed_table,
    )
