"""`[sink]`: where the rows go. One value for each kind of sink, with its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.sinks.delta.compaction import COMPACT_AFTER
from ottla.pipelines.sinks.files.sink import FORMATS
from ottla.pipelines.sinks.postgresql.settings import EXAMPLE, Database, read_database
from ottla.pipelines.spec.option import option
from ottla.pipelines.target.keyed_table import DELETES

DELTA: Final = "delta"
"""The format of a sink that is a Delta table."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What all sinks but a topic take."""

    target: str = option(
        "a path, which has a slash, or a table's name", example="./lake/flights", required=True
    )
    schema_changes: str = option(
        "columns that the target does not have: refuse them, or add them",
        default="refuse",
        choices=("refuse", "add"),
    )


@dataclass(frozen=True, slots=True)
class KeyedOptions(TableOptions):
    """What a table takes that may have keys."""

    keys: tuple[str, ...] = option(
        "the columns of the key: its last record wins", "names", default=(), example="'id'"
    )
    order_by: str | None = option(
        "the column that orders the records of a key; by default their offsets",
        default=None,
        example="timestamp",
    )
    deletes: str = option(
        "the row of a deleted key: remove it, or mark it in `is_deleted`",
        default=DELETES[0],
        choices=DELETES,
    )
    max_ahead: str | None = option(
        "how far ahead of the clock `order_by` may be, such as `1 hour`",
        default=None,
        example="1 hour",
    )


@dataclass(frozen=True, slots=True)
class DeltaSpec(KeyedOptions):
    """A Delta table, with `to_delta()`'s arguments."""

    others: ClassVar[str] = "is not for a Delta table: leave it out"

    partition_by: tuple[str, ...] = option(
        "the columns that a new table is partitioned by", "names", default=(), example="'carrier'"
    )
    history: bool = option("keep every version of a key", "flag", default=False)
    compact_after: int = option(
        "join small files after so many new ones; 0: never",
        "count",
        default=COMPACT_AFTER,
    )
    deletion_vectors: bool | None = option(
        "whether a new table has deletion vectors; by default where it has keys",
        "flag",
        default=None,
    )


@dataclass(frozen=True, slots=True)
class FilesSpec(TableOptions):
    """A folder of files, with `to_files()`'s arguments."""

    others: ClassVar[str] = "is not for files, which are appended: leave it out"

    format: str = option("the format of the files", default="", choices=FORMATS)
    partition_by: tuple[str, ...] = option(
        "the columns that a new folder is partitioned by", "names", default=(), example="'carrier'"
    )


@dataclass(frozen=True, slots=True)
class DatabaseSpec(KeyedOptions):
    """A table of PostgreSQL, with `to_postgresql()`'s arguments."""

    others: ClassVar[str] = "is not for a table of a database: leave it out"

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


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic, with `to_topic()`'s arguments."""

    others: ClassVar[str] = "is for tables, and this sink writes a topic: leave one out"

    topic: str = option("the topic to write", example="late-flights", required=True)
    kafka: KafkaSettings = option(
        "the settings of its cluster and its producer; by default those of `[source.kafka]`",
        "other",
        takes="table",
        secret=True,
    )
    producer: tuple[tuple[str, str], ...] = ()
    key: str | None = option("the key, as SQL", default=None, example="carrier")
    value: str | None = option("the value, as SQL", default=None, example="struct(flight, delay)")
    headers: str | None = option("the headers, as SQL", default=None, example="headers")

    @property
    def target(self) -> str:
        """The topic in a sentence."""
        return f"topic {self.topic}"


SinkSpec: TypeAlias = DeltaSpec | FilesSpec | DatabaseSpec | TopicSpec
SINKS: Final = (DeltaSpec, FilesSpec, DatabaseSpec, TopicSpec)
