"""A pipeline: frozen values, whose fields carry their description (`option`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source.debezium import (
    SOURCE_FORMATS,
    TRUNCATES,
    SourceFormat,
    Truncate,
)
from ottla.pipelines.source.words import UNKNOWN_FIELDS, UnknownFields
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import SinkSpec
from ottla.pipelines.target.expectations import ON_UNEXPECTED

Starting: TypeAlias = str | datetime | dict[int, int]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """`[source]`: the topic, with `topic()`'s arguments."""

    topic: str = option("the topic to read", example="flights", required=True)
    kafka: KafkaSettings = option(
        "librdkafka's settings, such as those of TLS and SASL", "other", takes="table", secret=True
    )
    schema: str | None = option(
        "the schema of values: fields, one type, or `registry`",
        default=None,
        example="carrier STRING NOT NULL, dep_delay DOUBLE",
    )
    key_schema: str | None = option("that of keys", default=None, example="string")
    starting: Starting = option(
        "where a new checkpoint begins",
        "other",
        default="earliest",
        takes='`"earliest"`, `"latest"`, `"table"`, a time, an offset for each partition',
    )
    max_rows: int | None = option("records of one batch", "count", default=None, at_least=1)
    rejects: Literal["separate", "keep"] = option(
        "what happens to records that do not parse: `<target>_rejected` gets them, or they stay "
        "among the rows",
        default="separate",
        choices=("separate", "keep"),
    )
    tombstones: Literal["skip", "keep", "mark"] | None = option(
        "records without a value", default=None, choices=("skip", "keep", "mark")
    )
    unknown_fields: UnknownFields = option(
        "fields that the schema lacks", default="drop", choices=UNKNOWN_FIELDS
    )
    source_format: SourceFormat = option(
        "`debezium`: the values are events of Debezium, and `schema` has the columns of the table",
        default="plain",
        choices=SOURCE_FORMATS,
    )
    truncate: Truncate = option(
        "with `debezium`: the table was truncated: stop before the batch, ignore the event, or "
        "apply it to a table with keys",
        default="stop",
        choices=TRUNCATES,
    )
    registry: RegistrySettings | None = option(
        "the schema registry", "other", default=None, takes="URL, or a table with `url`"
    )  # its repr has no values


@dataclass(frozen=True, slots=True)
class TableSpec:
    """`[transform.tables.NAME]`: a table to look things up in, read with Spark's format."""

    name: str
    format: str = option("Spark's format", example="csv", required=True)
    path: str = option("where it lies", "path", example="airlines.csv", required=True)
    schema: str | None = option("its columns", default=None, example="carrier STRING, name STRING")
    options: tuple[tuple[str, str], ...] = option(
        "Spark's options of the format", "settings", default=()
    )


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of a Python file: it takes the topic's rows and returns the rows to write."""

    file: Path
    name: str


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """`[transform]`: SQL over the view of the topic's rows, or a function; neither: all rows."""

    view: str = option("the name of the topic's rows in SQL; by default the topic's")
    sql: str | None = option("what to write, as SQL over the view", default=None)
    function: FunctionSpec | None = option(
        "a function that takes the rows as a DataFrame and returns one",
        "other",
        default=None,
        takes="`FILE.py:NAME`",
    )
    tables: tuple[TableSpec, ...] = option(
        "tables to look things up in", "other", default=(), takes="tables"
    )


@dataclass(frozen=True, slots=True)
class DeliverySpec:
    """`[delivery]`: how the rows get there, with the arguments that all sinks have."""

    checkpoint: str = option(
        "the folder where the query keeps its progress, kept as long as the target",
        "path",
        example="./checkpoints/flights",
        required=True,
    )
    group: str = option(
        "the consumer group that gets the query's offsets; by default the pipeline's name",
        example="flights-delta",
    )
    guarantee: str = option(
        "the argument `delivery`: what a kill may do to the batch under way",
        default=str(DeliveryGuarantee.EXACTLY_ONCE),
        choices=tuple(reversed([str(one) for one in DeliveryGuarantee])),
    )
    trigger: tuple[str, str | bool] | None = option(
        "when a batch begins; by default when the last is done",
        "other",
        default=None,
        takes='`"available-now"`, or an interval such as `"10 seconds"`',
    )
    on_lost: str = option(
        "records that were not delivered are gone: stop, or skip them",
        default="stop",
        choices=("stop", "skip"),
    )
    on_rejects: str = option(
        "most of the first batch of a new checkpoint does not parse: stop, or continue",
        default="stop",
        choices=("stop", "continue"),
    )
    max_rejects: int | None = option(
        "how many rows of one run may be rejected before the query fails", "count", default=None
    )
    expect: tuple[tuple[str, str], ...] = option(
        'conditions on each row, as SQL by name, such as `{ short = "delay < 1000" }`',
        "conditions",
        default=(),
    )
    on_unexpected: str = option(
        "a row that does not fulfil them: keep it in `<target>_rejected`, drop it, or stop",
        default=ON_UNEXPECTED[0],
        choices=ON_UNEXPECTED,
    )
    dead_letters: str | None = option(
        "a topic that gets the rejected rows too", default=None, example="flights-dead"
    )


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """`[spark]`: the session, with `session()`'s arguments."""

    master: str | None = option("where Spark runs", default=None, example="local[*]")
    packages: tuple[str, ...] = option(
        "packages for Spark, by Maven's names",
        "names",
        default=(),
        example="'org.example:library:1.0'",
    )
    jars: tuple[str, ...] = option(
        "jars, or folders of jars", "paths", default=(), example="'/opt/jars'"
    )
    ivy_settings: str | None = option(
        "Ivy's file of repositories", "path", default=None, example="ivysettings.xml"
    )
    conf: tuple[tuple[str, str], ...] = option(
        "Spark's own settings", "settings", default=(), secret=True
    )


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
