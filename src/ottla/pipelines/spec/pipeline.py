"""A pipeline as its file describes it: frozen values, checked by `read`, made real by `build`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.sinks.compaction import COMPACT_AFTER
from ottla.pipelines.sinks.jdbc_settings import Database
from ottla.pipelines.source.words import UnknownFields

DELTA: Final = "delta"
"""The format of a sink that is a Delta table."""

Starting: TypeAlias = str | datetime | dict[int, int]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """`[source]`: the topic, with `topic()`'s arguments."""

    topic: str
    kafka: KafkaSettings = field(repr=False)  # it may hold a password
    schema: str | None = None
    key_schema: str | None = None
    starting: Starting = "earliest"
    max_rows: int | None = None
    rejects: str = "apart"
    tombstones: str | None = None
    unknown_fields: UnknownFields = "drop"
    registry: RegistrySettings | None = None  # its repr has no values


@dataclass(frozen=True, slots=True)
class TableSpec:
    """`[transform.tables.NAME]`: a table to look things up in, read with Spark's format."""

    name: str
    format: str
    path: str
    schema: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of a Python file: it takes the topic's rows and returns the rows to write."""

    file: Path
    name: str


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """`[transform]`: SQL over the view of the topic's rows, or a function; neither: all rows."""

    view: str
    sql: str | None = None
    function: FunctionSpec | None = None
    tables: tuple[TableSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicSinkSpec:
    """`[sink]` with `topic`: the topic to write, with `to_topic()`'s arguments."""

    topic: str
    kafka: KafkaSettings = field(repr=False)  # it may hold a password
    producer: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    value: str | None = None
    headers: str | None = None


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """`[sink]`: where the rows go, with `to_delta()`'s arguments. `target` may name a topic.

    `format` is that of the files, with `to_files()`'s arguments; `database` has the table, with
    `to_jdbc()`'s.
    """

    target: str
    partition_by: tuple[str, ...] = ()
    schema_changes: str = "refuse"
    keys: tuple[str, ...] = ()
    order_by: str | None = None
    history: bool = False
    deletes: str = "remove"
    max_ahead: str | None = None
    compact_after: int = COMPACT_AFTER
    deletion_vectors: bool | None = None
    topic: TopicSinkSpec | None = None
    format: str = DELTA
    database: Database | None = None

    @property
    def is_delta(self) -> bool:
        """Whether the rows go into a Delta table."""
        return self.topic is None and self.database is None and self.format == DELTA


@dataclass(frozen=True, slots=True)
class DeliverySpec:
    """`[delivery]`: how the rows get there, with `to_delta()`'s arguments."""

    checkpoint: str
    group: str
    guarantee: str = "exactly-once"
    trigger: tuple[str, str | bool] | None = None
    on_lost: str = "stop"
    on_rejects: str = "stop"
    max_rejects: int | None = None
    dead_letters: str | None = None


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """`[spark]`: the session, with `session()`'s arguments."""

    master: str | None = None
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    ivy_settings: str | None = None
    conf: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """One pipeline of a file."""

    name: str
    source: SourceSpec
    transform: TransformSpec
    sink: SinkSpec
    delivery: DeliverySpec


@dataclass(frozen=True, slots=True)
class FileSpec:
    """All pipelines of a file; they run in one session."""

    file: Path
    pipelines: tuple[PipelineSpec, ...]
    spark: SparkSpec
