"""`to_postgresql`: a stream into a table of PostgreSQL; see `sinks.postgresql.sink`."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import require_pyspark
from ottla.pipelines.run.frame import Written
from ottla.pipelines.run.specification import Specification, asked
from ottla.pipelines.run.start import start_or_write
from ottla.pipelines.sinks.postgresql.settings import Database, read_database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.postgresql.table import read_table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def to_postgresql(  # noqa: PLR0913
    df: DataFrame | Callable[[], DataFrame],
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
    on_rejects: str = "stop",
    group: str | None = None,
    max_rejects: int | None = None,
    dead_letters: str | None = None,
    keys: str | tuple[str, ...] | list[str] = (),
    order_by: str | None = None,
    deletes: str = "remove",
    max_ahead: str | None = None,
) -> StreamingQuery | Written:
    """Start a query that writes a stream to a table of PostgreSQL, or write a batch frame to it.

    Each batch is one transaction of the database. The rows are appended; with `keys` the table
    has the last row of each key.

    Args:
        df: a streaming frame, such as `topic` gives, or a function that returns one, as for
            `to_delta`; or a batch frame.
        target: the table, as `table` or `schema.table`, taken as it is written; a part with a dot
            or a quote in double quotes. It is created if it does not exist.
        url: the database, such as "jdbc:postgresql://localhost:5432/lake", without user and
            password.
        user, password: who logs in; None for what the driver finds by itself (`~/.pgpass`).
        settings: settings of PostgreSQL's JDBC driver, such as {"sslmode": "verify-full"}.
        checkpoint, trigger, delivery, on_lost, on_rejects, group, max_rejects, dead_letters: as for
            `to_delta`.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them.
        keys: the columns of the key; a new table gets them as its primary key, one that exists
            must have a unique index on them. The frame needs the topic's `partition` and `offset`.
        order_by, deletes, max_ahead: as for `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; a database, brokers, a topic or a checkpoint that do not
            fit together; records that are lost.
    """
    given = locals()  # the arguments: nothing else has a name yet
    require_pyspark()
    specification = asked("to_postgresql", given)
    database = read_database(url, user, password, settings)
    sink_of = functools.partial(postgresql_sink, database=database)
    return start_or_write(specification, sink_of(specification).shown, sink_of, JdbcSink.failures)


def postgresql_sink(specification: Specification, database: Database) -> JdbcSink:
    """Return the table that a specification names. Raises PipelineError."""
    frame = specification.frame
    return JdbcSink(
        frame.sparkSession,
        database,
        read_table_name(specification.target),
        frame.schema,
        specification.schema_changes,
        specification.keyed_table,
        specification.max_ahead,
    )


@functools.wraps(to_postgresql)
def to_jdbc(*arguments: Any, **options: Any) -> StreamingQuery | Written:
    """Call `to_postgresql`: the name until version 0.1."""
    warnings.warn(
        "to_jdbc is to_postgresql: the old name goes with the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return to_postgresql(*arguments, **options)
