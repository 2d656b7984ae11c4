"""`to_postgresql`: a stream into a table of PostgreSQL; see `sinks.postgresql.sink`."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.failures.known import Known
from ottla.pipelines.run.frame import Written
from ottla.pipelines.sinks.postgresql.settings import EXAMPLE, Database, read_database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.postgresql.table import read_table_name
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.spec.fields import Fields
    from ottla.pipelines.spec.sink import Reading
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class DatabaseSpec(KeyedOptions):
    """A table of PostgreSQL, with `to_postgresql()`'s arguments."""

    title: ClassVar[str] = "`[sink]` with `url`: a table of PostgreSQL"
    marked_by: ClassVar[str] = "url"
    others: ClassVar[str] = "is not for a table of a database: leave it out"
    failures: ClassVar[tuple[Known, ...]] = JdbcSink.failures

    target: str = option("the table's name", example="lake.flights", required=True)
    url: str = option("the database", default="", example=EXAMPLE, required=True)
    user: str | None = option("who writes", default=None, example="app")
    password: str | None = option("the password", default=None, secret=True)
    settings: tuple[tuple[str, str], ...] = option(
        "the driver's settings, such as `sslmode`", "settings", default=(), secret=True
    )

    @property
    def database(self) -> Database:
        """The database of these arguments. Raises PipelineError, which quotes no secret."""
        return read_database(self.url, self.user, self.password, dict(self.settings or ()))

    @property
    def shown(self) -> str:
        """The table and its database. Raises PipelineError."""
        return f"{read_table_name(self.target).shown} in {self.database.shown}"

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives; no problem quotes a password."""
        spec = cls(**given)
        if spec.target:
            check(fields, "target", lambda: read_table_name(spec.target))
        if spec.url:
            check(fields, "url", lambda: spec.database)
        return spec

    def sink(self, asked: Specification) -> Sink:
        """Return the table for the rows of a frame. Raises PipelineError."""
        frame = asked.frame
        return JdbcSink(
            frame.sparkSession,
            self.database,
            read_table_name(asked.target),
            frame.schema,
            asked.schema_changes,
            asked.keyed_table,
            asked.max_ahead,
        )

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        no_rows, name = StructType(), read_table_name(self.target)
        return JdbcSink(spark, self.database, name, no_rows).rejected(no_rows)


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
    expect: Mapping[str, str] | None = None,
    on_unexpected: str = "reject",
    keys: str | tuple[str, ...] | list[str] = (),
    order_by: str | None = None,
    ignore_nulls: bool = False,
    deletes: str = "remove",
    max_ahead: str | None = None,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    mode: str = "append",
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
        expect, on_unexpected: as for `to_delta`.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them.
        keys: the columns of the key; a new table gets them as its primary key, one that exists
            must have a unique index on them. The frame needs the topic's `partition` and `offset`.
        order_by, ignore_nulls, deletes, max_ahead, mode: as for `to_delta`.
        apply_as_deletes, apply_as_truncates: as for `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; a database, brokers, a topic or a checkpoint that do not
            fit together; records that are lost.
    """
    return DatabaseSpec.start("to_postgresql", locals())


@functools.wraps(to_postgresql)
def to_jdbc(*arguments: Any, **options: Any) -> StreamingQuery | Written:
    """Call `to_postgresql`: the name until version 0.1."""
    warnings.warn(
        "to_jdbc is to_postgresql: the old name goes with the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return to_postgresql(*arguments, **options)
