"""`[sink]` with `url`: a table of PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.failures.known import Known
from ottla.pipelines.sinks.postgresql.settings import EXAMPLE, Database, read_database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.postgresql.table import read_table_name
from ottla.pipelines.sinks.postgresql.to_postgresql import postgresql_sink
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        return read_database(self.url, self.user, self.password, dict(self.settings))

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
        return postgresql_sink(asked, self.database)

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        no_rows, name = StructType(), read_table_name(self.target)
        return JdbcSink(spark, self.database, name, no_rows).rejected(no_rows)
