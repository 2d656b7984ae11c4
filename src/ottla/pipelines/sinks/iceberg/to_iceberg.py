"""`to_iceberg`: a stream into a table of Apache Iceberg; see `sinks.iceberg.sink`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import require_pyspark
from ottla.pipelines.run.frame import Written
from ottla.pipelines.run.specification import Specification, asked
from ottla.pipelines.run.start import start_or_write
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.iceberg.table import read_name, require_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def to_iceberg(  # noqa: PLR0913
    df: DataFrame | Callable[[], DataFrame],
    target: str,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
    delivery: str = "exactly-once",
    schema_changes: str = "refuse",
    on_lost: str = "stop",
    on_rejects: str = "stop",
    partition_by: str | tuple[str, ...] | list[str] = (),
    group: str | None = None,
    max_rejects: int | None = None,
    dead_letters: str | None = None,
    keys: str | tuple[str, ...] | list[str] = (),
    order_by: str | None = None,
    deletes: str = "remove",
    max_ahead: str | None = None,
) -> StreamingQuery | Written:
    """Start a query that writes a stream to an Iceberg table, or write a batch frame to it.

    The rows are appended; with `keys` the table has the last row of each key. Spark needs Iceberg's
    jar and the settings of a catalog: `session(..., packages=..., conf=...)`.

    Args:
        df: a streaming frame, such as `topic` gives, or a function that returns one, as for
            `to_delta`; or a batch frame, which is one commit.
        target: the table's name with its catalog, such as `lake.db.flights`. It is created if it
            does not exist, in a namespace that exists.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them
            and widen columns to the types of the rows: INT to BIGINT, FLOAT to DOUBLE, decimals.
        partition_by: the columns that a new table is partitioned by. For Iceberg's hidden
            partitions (`days(at)`) create the table yourself.
        keys, order_by, deletes, max_ahead: as for `to_delta`.
        checkpoint, trigger, delivery, on_lost, on_rejects, group, max_rejects, dead_letters: as for
            `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; a session without Iceberg or without the catalog; brokers,
            a topic, a table or a checkpoint that do not fit together; records that are lost.
    """
    given = locals()  # the arguments: nothing else has a name yet
    require_pyspark()
    specification = asked("to_iceberg", given)
    return start_or_write(specification, str(target), iceberg_sink, IcebergSink.failures)


def iceberg_sink(specification: Specification) -> IcebergSink:
    """Return the table that a specification names. Raises PipelineError."""
    frame, name = specification.frame, read_name(specification.target)
    require_catalog(frame.sparkSession, name)
    return IcebergSink(
        frame.sparkSession,
        name,
        frame.schema,
        specification.schema_changes,
        specification.partition_columns,
        specification.keyed_table,
        specification.max_ahead,
    )
