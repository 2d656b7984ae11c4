"""`topic`: a topic as a streaming DataFrame, and `rejected`: its rows that do not parse.

Spark counts the rows that do not parse in the same pass (`observedMetrics` of the query's
progress), so keeping them apart costs no second read of the topic while all rows parse.
`to_delta` looks at that count after each batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed
from ottla.pipelines.source.source import OPTION, REJECTED, SOURCES, Source
from ottla.pipelines.source.starting import read_starting

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    Schema: TypeAlias = StructType | DataType | str | None

_PLACE: Final = ("partition", "offset", "timestamp", "headers")


def topic(
    spark: SparkSession,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    schema: Schema = None,
    key_schema: Schema = None,
    starting: str | datetime | Mapping[int, int] = "earliest",
) -> DataFrame:
    """Return the topic as a streaming DataFrame of the rows that parse.

    Columns: `key` and `value` parsed by their schemas, `partition` (int), `offset` (bigint),
    `timestamp`, `headers` (array of struct<key string, value binary>). A record without key or
    value (a tombstone) has null there.

    A schema is a StructType or DDL of a JSON object's fields; or one type: "string" (also None:
    UTF-8 text), "binary" (the bytes as they are), "bigint", "double" ... A field NOT NULL must
    be there. Rows that do not parse are not in the frame and not lost: `to_delta` writes them
    to the table `<target>_rejected`, `rejected` streams them, and each progress of the query
    counts them.

    Args:
        bootstrap_servers: any Kafka broker's, "host:port,host:port" or a list.
        starting: where a query without a checkpoint starts: "earliest", "latest", a datetime
            with a time zone, {partition: offset}, or "table" (with `to_delta`: where the table
            ends).

    Raises:
        PipelineError: a schema or a start that is none.
    """
    source = _source(name, bootstrap_servers, schema, key_schema, starting)
    SOURCES[source.metric] = source
    frame = parse(_stream(spark, source), source.schemas)
    if source.can_reject:
        from pyspark.sql import functions as F  # noqa: N812

        count = F.count(REASON).alias(REJECTED)
        frame = frame.observe(source.metric, count).where(F.col(REASON).isNull())
    return frame.select(*take_parsed(frame, source.schemas), *_PLACE)


def rejected(
    spark: SparkSession,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    schema: Schema = None,
    key_schema: Schema = None,
    starting: str | datetime | Mapping[int, int] = "earliest",
) -> DataFrame:
    """Return the rows of a topic that `topic`, called alike, keeps apart.

    A streaming DataFrame: `topic`, `partition`, `offset`, `timestamp`, `headers`, the raw bytes
    as `key` and `value`, and `reason`. For sinks of your own; `to_delta` needs it not.
    """
    source = _source(name, bootstrap_servers, schema, key_schema, starting)
    return only_rejected(_stream(spark, source), source)


def only_rejected(raw: DataFrame, source: Source) -> DataFrame:
    """Return of Kafka's raw rows those that do not parse, with the reason."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = parse(raw, source.schemas).where(F.col(REASON).isNotNull())
    return frame.select("topic", *_PLACE, "key", "value", F.col(REASON).alias("reason"))


def _source(
    name: str, servers: str | Iterable[str], schema: Schema, key_schema: Schema, starting: Any
) -> Source:
    require_pyspark()
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
        raise PipelineError(
            f"{name!r} is no topic's name: letters, digits, '.', '_' and '-', at most 249"
        )
    kafka = read_settings(servers)
    schemas = {"key": read_schema(key_schema, "key_schema"), "value": read_schema(schema, "schema")}
    return Source(name, kafka, schemas, read_starting(starting))


def _stream(spark: SparkSession, source: Source) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .options(**source.kafka.for_spark())
        .option("subscribe", source.name)
        .options(**_starting_options(source))
        .option("includeHeaders", True)
        .option(OPTION, source.metric)
        .load()
    )


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
