"""`topic`: a topic as a streaming DataFrame, and `rejected`: its rows that do not parse.

Spark counts the rows that do not parse in the same pass (`observedMetrics` of the query's
progress), so keeping them apart costs no second read of the topic while all rows parse.
`to_delta` looks at that count after each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.registry.registered import is_wanted
from ottla.pipelines.registry.settings import RegistrySettings, read_registry
from ottla.pipelines.source import connect, debezium
from ottla.pipelines.source.debezium import (
    DEBEZIUM,
    SOURCE_FORMATS,
    TRUNCATES,
    SourceFormat,
    Truncate,
)
from ottla.pipelines.source.debezium_registry import framed_envelope
from ottla.pipelines.source.observed import observed_blocks
from ottla.pipelines.source.parse import (
    GIVEN,
    REASON,
    UNKNOWN,
    as_json_object,
    is_object,
    object_of,
    parse,
    read_schema,
    take_parsed,
)
from ottla.pipelines.source.registry_schema import framed_schema
from ottla.pipelines.source.source import (
    OPTION,
    REJECTED,
    TOMBSTONES,
    UNKNOWN_NAMES,
    UNKNOWN_ROWS,
    Source,
    keep,
)
from ottla.pipelines.source.starting_offsets import read_starting
from ottla.pipelines.source.unknown import COLUMN
from ottla.pipelines.source.watch import watch_rejects
from ottla.pipelines.source.words import UNKNOWN_FIELDS, UnknownFields
from ottla.pipelines.spark.jvm.required import is_connect, require_jvm

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    Schema: TypeAlias = StructType | DataType | str | None

_POSITION: Final = ("partition", "offset", "timestamp", "headers")


def topic(
    spark: SparkSession,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    schema: Schema = None,
    key_schema: Schema = None,
    starting: str | datetime | Mapping[int, int] = "earliest",
    kafka: Mapping[str, Any] | None = None,
    registry: str | Mapping[str, Any] | None = None,
    max_rows: int | None = None,
    rejects: Literal["separate", "keep"] = "separate",
    tombstones: Literal["skip", "keep", "mark"] | None = None,
    unknown_fields: UnknownFields = "drop",
    source_format: SourceFormat = "plain",
    truncate: Truncate = "stop",
) -> DataFrame:
    """Return the topic as a streaming DataFrame of the rows that parse.

    Columns: `key` and `value` parsed by their schemas, `partition` (int), `offset` (bigint),
    `timestamp`, `headers` (array of struct<key string, value binary>).

    A schema is a StructType or DDL of a JSON object's fields; or one type: "string" (UTF-8 text,
    a value without a schema), "binary" (the bytes as they are, a key without a schema),
    "bigint", "double" ... A field NOT NULL must be there, at every depth. Rows that do not parse
    are not in the frame and not lost: `to_delta` writes them to the table `<target>_rejected`,
    `rejected` streams them, and each progress of the query counts them.

    Over Spark Connect, as in Spark's declarative pipelines, the query is Spark's own: there
    rejects="keep" is needed, and neither a registry nor starting="table" can be used.

    Args:
        bootstrap_servers: those of any Kafka cluster, "host:port,host:port" or a list.
        starting: where a query without a checkpoint starts: "earliest", "latest", a datetime
            with a time zone, {partition: offset}, or "table" (with `to_delta`: where the table
            ends).
        kafka: client settings by librdkafka's names, such as {"security.protocol": "SASL_SSL"};
            the source, the look-ups and the group commits use them.
        registry: a schema registry with Confluent's REST interface and framing: its URL, or a
            dict of settings by confluent-kafka's names with `url` among them. The value is then
            read by the latest schema of the subject `<name>-value`. schema="registry:SUBJECT" or
            "registry:SUBJECT@VERSION" names another one, and key_schema takes the same words.
            "#MESSAGE" after it names a message of a Protobuf schema that has several. Avro needs
            a module of Spark's: session(formats=["avro"]); Protobuf needs the package protobuf in
            the Python of the driver and, without session(formats=["protobuf"]), of the executors.
        max_rows: the most rows that a batch reads, all partitions together.
        rejects: "keep" leaves the rows that do not parse in the frame, with null for what does
            not parse and the column `reason`, null in the other rows.
        tombstones: records with a null value: "skip" counts them and leaves them out, the
            default where the value is a JSON object; "keep" gives rows with a null value; "mark"
            keeps them too, and adds the column `tombstone` (boolean), by which `to_delta` with
            `keys` deletes.
        unknown_fields: fields of a JSON object that `schema` lacks, at every depth: "drop" leaves
            them out; "keep" has them as JSON in one more field of `value`, `_unknown`, null without
            any; "reject" rejects the row. With "drop" and "keep" the query's progress and its state
            count the rows and name the fields.
        source_format: "debezium" for events of Debezium as JSON, with or without their schema:
            `schema` has the columns of the database's table; or, with `registry`, as Avro or JSON
            by the schema of the event that is there. `value` is the row: that after the
            change, or of a deletion that before it. More columns: `before`, `op`, `ts_ms`, `source`
            and `transaction` (JSON as text), and `tombstone`, which is true in deletions: select it
            for a table with keys. The tombstones after deletions are left out.
        truncate: what an event of Debezium does which says that the table was truncated: "stop" the
            query before its batch is written, "ignore" it, or "apply" it: the column `truncation`
            is true in it; select it, and the rows of a table with keys that are older go.

    Raises:
        PipelineError: a wrong schema, start or setting; a registry that does not answer or whose
            schema cannot be read.
    """
    _require_session(spark, starting, registry)
    source = _source(spark, name, bootstrap_servers, schema, key_schema, kafka, starting, registry)
    source = replace(source, **_checked_rows(source, max_rows, rejects, tombstones))
    source = replace(source, unknown_fields=_checked_unknown(source, unknown_fields))
    source = _checked_format(source, source_format, truncate, tombstones)
    if is_connect(spark):
        connect.require_all_rows(source)
        return rows_of(_stream(spark, source), source, counts=False)
    keep(source)
    raw = _stream(spark, source)
    watch_rejects(spark)
    return rows_of(raw, source)


def _require_session(spark: SparkSession, starting: Any, registry: Any) -> None:
    """Raise PipelineError unless the session gives what these arguments ask of it."""
    require_pyspark()
    if is_connect(spark):
        connect.require_own_query(starting, registry)
    else:
        require_jvm(spark)


def rows_of(raw: DataFrame, source: Source, *, counts: bool = True) -> DataFrame:
    """Return Kafka's raw rows of a source as `topic` gives its stream.

    `counts`: the query's progress counts the rows that are left out.
    """
    parsed = parse(
        raw,
        source.schemas,
        name_fields=source.rejects == "keep",
        unknown_fields=source.unknown_fields,
        source_format=source.source_format,
    )
    return _rows(parsed, source, counts=counts and source.counts)


def _rows(frame: DataFrame, source: Source, *, counts: bool) -> DataFrame:
    """Count and leave out what the source does not keep, and choose the columns."""
    from pyspark.sql import functions as F  # noqa: N812

    parses = F.col(REASON).isNull()
    tombstone = ~F.col(f"{GIVEN}value") & parses
    if counts:
        names_unknown = as_json_object(source.schemas["value"]) is not None
        frame = frame.observe(
            source.metric,
            F.count(REASON).alias(REJECTED),
            F.count(F.when(tombstone, 1)).alias(TOMBSTONES),
            *(observed_blocks(REASON) if source.can_reject else ()),
            *(_observed_unknown(parses) if names_unknown else ()),
        )
    if source.can_reject:
        frame = frame.where(parses)
    if source.tombstones == "skip":
        frame = frame.where(~tombstone)
    columns = take_parsed(source.schemas, keeps_unknown=source.unknown_fields == "keep")
    if source.is_debezium:
        key, value = columns
        kind = object_of(source.schemas["value"])
        events = debezium.rows(frame, key, value, kind, _POSITION)
        return debezium.with_truncates(events, source.truncate)
    marks = [tombstone.alias("tombstone")] if source.tombstones == "mark" else []
    if source.rejects == "separate":
        return frame.select(*columns, *_POSITION, *marks)
    kept = [
        F.when(parses, column).alias(name)
        if is_object(schema) or isinstance(schema, Framed)
        else column
        for column, (name, schema) in zip(columns, source.schemas.items(), strict=True)
    ]
    return frame.select(*kept, *_POSITION, *marks, F.col(REASON).alias("reason"))


def _observed_unknown(parses: Column) -> list[Column]:
    """Return what to observe: the rows with unknown fields, and the names of two of these.

    All names would not be bounded: a value may have other ones in each record.
    """
    from pyspark.sql import functions as F  # noqa: N812

    names = F.when(parses, F.col(UNKNOWN))
    first, last = UNKNOWN_NAMES
    return [
        F.count(names).alias(UNKNOWN_ROWS),
        F.min(names).alias(first),
        F.max(names).alias(last),
    ]


def rejected(
    spark: SparkSession,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    schema: Schema = None,
    key_schema: Schema = None,
    starting: str | datetime | Mapping[int, int] = "earliest",
    kafka: Mapping[str, Any] | None = None,
    registry: str | Mapping[str, Any] | None = None,
    unknown_fields: UnknownFields = "drop",
    source_format: SourceFormat = "plain",
) -> DataFrame:
    """Return the rows of a topic that `topic`, with the same arguments, keeps apart.

    A streaming DataFrame: `topic`, `partition`, `offset`, `timestamp`, `headers`, the raw bytes
    as `key` and `value`, and `reason`. It is for sinks of your own; `to_delta` writes these rows
    itself.
    """
    _require_session(spark, starting, registry)
    source = _source(spark, name, bootstrap_servers, schema, key_schema, kafka, starting, registry)
    source = replace(source, unknown_fields=_checked_unknown(source, unknown_fields))
    source = _checked_format(source, source_format, "stop", None)
    return only_rejected(_stream(spark, source), source)


def only_rejected(raw: DataFrame, source: Source) -> DataFrame:
    """Return of Kafka's raw rows those that do not parse, with the reason."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = parse(
        raw,
        source.schemas,
        name_fields=True,
        unknown_fields=source.unknown_fields,
        source_format=source.source_format,
    ).where(F.col(REASON).isNotNull())
    return frame.select("topic", *_POSITION, "key", "value", F.col(REASON).alias("reason"))


def _source(
    spark: SparkSession,
    name: str,
    servers: str | Iterable[str],
    schema: Schema,
    key_schema: Schema,
    kafka: Mapping[str, Any] | None,
    starting: Any,
    registry: str | Mapping[str, Any] | None,
) -> Source:
    if wrong := wrong_name(name):
        raise PipelineError(wrong)
    settings = None if registry is None else read_registry(registry)
    if settings is not None and schema is None:
        schema = "registry"
    start, clients = read_starting(starting), read_settings(servers, kafka or {})
    schemas = {
        "key": _schema(spark, settings, name, "key", key_schema),
        "value": _schema(spark, settings, name, "value", schema),
    }
    return Source(name, clients, schemas, start, registry=settings)


def _schema(
    spark: SparkSession, registry: RegistrySettings | None, topic: str, column: str, schema: Schema
) -> DataType | Framed:
    argument = "key_schema" if column == "key" else "schema"
    if not is_wanted(schema):
        if isinstance(schema, str) and is_connect(spark):
            schema = connect.read_schema_text(schema, argument)
        return read_schema(schema, argument)
    if registry is None:
        raise PipelineError(
            f"{argument}={schema!r} needs the registry: topic(..., registry='http://...')"
        )
    return framed_schema(spark, registry, topic, column, str(schema))


def _checked_rows(source: Source, max_rows: Any, rejects: Any, tombstones: Any) -> dict[str, Any]:
    if rejects not in ("separate", "keep"):
        raise PipelineError(f"rejects={rejects!r}: write 'separate' or 'keep'")
    if tombstones not in (None, "skip", "keep", "mark"):
        raise PipelineError(f"tombstones={tombstones!r}: write 'skip', 'keep' or 'mark'")
    if max_rows is not None and (
        isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1
    ):
        raise PipelineError(f"max_rows={max_rows!r}: write a number of rows, at least 1")
    if tombstones is None:
        tombstones = "skip" if is_object(source.schemas["value"]) else "keep"
    return {"max_rows": max_rows, "rejects": rejects, "tombstones": tombstones}


def _checked_unknown(source: Source, unknown_fields: Any) -> UnknownFields:
    if unknown_fields not in UNKNOWN_FIELDS:
        raise PipelineError(f"unknown_fields={unknown_fields!r}: write 'drop', 'keep' or 'reject'")
    fields = as_json_object(source.schemas["value"])
    if unknown_fields != "drop" and fields is None:
        raise PipelineError(
            f"unknown_fields={unknown_fields!r} is for a value that is a JSON object: give its "
            "fields as schema='carrier STRING, delay DOUBLE'"
        )
    if unknown_fields == "keep" and fields is not None and COLUMN in map(str.lower, fields.names):
        raise PipelineError(
            f"unknown_fields='keep' keeps them in the field {COLUMN}, which the schema has: give "
            "that one another name"
        )
    found: UnknownFields = unknown_fields
    return found


def _checked_format(source: Source, source_format: Any, truncate: Any, tombstones: Any) -> Source:
    """Return the source whose values are what `source_format` says. Raises PipelineError."""
    if source_format not in SOURCE_FORMATS:
        raise PipelineError(f"source_format={source_format!r}: write 'plain' or 'debezium'")
    if truncate not in TRUNCATES:
        raise PipelineError(f"truncate={truncate!r}: write 'stop', 'ignore' or 'apply'")
    if source_format != DEBEZIUM:
        if truncate != TRUNCATES[0]:
            raise PipelineError(
                f"truncate={truncate!r} is for source_format='debezium': leave it out"
            )
        return source
    row = source.schemas["value"]
    framed = framed_envelope(row) if isinstance(row, Framed) else None
    if not is_object(row):
        raise PipelineError(
            "source_format='debezium' needs the columns of the database's table in schema, such "
            "as schema='id INT NOT NULL, name STRING', or the registry of its events"
        )
    if source.rejects != "separate" or source.unknown_fields == "keep":
        raise PipelineError(
            "source_format='debezium' takes neither rejects='keep' nor unknown_fields='keep': "
            "leave them out"
        )
    if tombstones is not None:
        raise PipelineError(
            f"tombstones={tombstones!r} is not for source_format='debezium', whose deletions are "
            "events: the tombstones after them are left out"
        )
    event = framed or debezium.envelope(cast("StructType", row))
    schemas = source.schemas | {"value": event}
    return replace(source, schemas=schemas, source_format=source_format, truncate=truncate)


def _stream(spark: SparkSession, source: Source) -> DataFrame:
    reader = (
        spark.readStream.format("kafka")
        .options(**source.kafka.for_spark())
        .option("subscribe", source.name)
        .options(**_starting_options(source))
        .option("includeHeaders", True)
        .option(OPTION, source.metric)
    )
    if source.max_rows is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.max_rows)
    return reader.load()


def _starting_options(source: Source) -> dict[str, str]:
    """Return where a sink that is not Ottla's starts; `to_delta` writes explicit offsets."""
    starting = source.starting
    if isinstance(starting, datetime):
        return {
            "startingTimestamp": str(int(starting.timestamp() * 1_000)),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    if isinstance(starting, dict):
        return {"startingOffsets": json.dumps({source.name: starting})}
    return {"startingOffsets": "earliest" if starting == "table" else starting}
