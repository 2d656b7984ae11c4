"""`topic`: a topic as a streaming DataFrame, and `rejected`: its rows that do not parse.

The rows that parse are counted apart from those that do not by Spark itself, in the same pass
(`observedMetrics` of the query's progress), so keeping them apart costs no second reading of
the topic while all is well. `to_delta` looks at that count after each batch.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.parse import REASON, never_fails, parse, read_schema, take_parsed

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    Schema: TypeAlias = StructType | DataType | str | None

REJECTED: Final = "rejected"  # the name of the count in the query's progress
_PLACE: Final = ("partition", "offset", "timestamp", "headers")


@dataclass(frozen=True)
class Source:
    """One topic as it is read; `metric` names its count of rejected rows in the progress."""

    name: str
    bootstrap_servers: str
    schemas: dict[str, DataType]

    @property
    def metric(self) -> str:
        types = [schema.json() for schema in self.schemas.values()]
        spec = json.dumps([self.bootstrap_servers, *types])
        return f"ottla.{self.name}.{zlib.crc32(spec.encode()):08x}"

    @property
    def can_reject(self) -> bool:
        return not all(never_fails(schema) for schema in self.schemas.values())


# The sources of this process, by metric: to_delta finds those of a frame by the metrics in it.
SOURCES: Final[dict[str, Source]] = {}


def topic(
    spark: SparkSession,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    schema: Schema = None,
    key_schema: Schema = None,
    starting: str | Mapping[int, int] = "earliest",
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
        starting: "earliest", "latest" or {partition: offset}, for a query that has no
            checkpoint yet.

    Raises:
        PipelineError: a schema or a start that is none.
    """
    source = _source(name, bootstrap_servers, schema, key_schema)
    frame = parse(_stream(spark, source, starting), source.schemas)
    if source.can_reject:
        from pyspark.sql import functions as F  # noqa: N812

        SOURCES[source.metric] = source
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
    starting: str | Mapping[int, int] = "earliest",
) -> DataFrame:
    """Return the rows of a topic that `topic`, called alike, keeps apart.

    A streaming DataFrame: `topic`, `partition`, `offset`, `timestamp`, `headers`, the raw bytes
    as `key` and `value`, and `reason`. For sinks of your own; `to_delta` needs it not.
    """
    source = _source(name, bootstrap_servers, schema, key_schema)
    return only_rejected(_stream(spark, source, starting), source)


def only_rejected(raw: DataFrame, source: Source) -> DataFrame:
    """Return of Kafka's raw rows those that do not parse, with the reason."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = parse(raw, source.schemas).where(F.col(REASON).isNotNull())
    return frame.select("topic", *_PLACE, "key", "value", F.col(REASON).alias("reason"))


def _source(name: str, servers: str | Iterable[str], schema: Schema, key_schema: Schema) -> Source:
    require_pyspark()
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
        raise PipelineError(
            f"{name!r} is no topic's name: letters, digits, '.', '_' and '-', at most 249"
        )
    joined = servers if isinstance(servers, str) else ",".join(servers)
    if not re.fullmatch(r"[^,\s]+:\d+(\s*,\s*[^,\s]+:\d+)*", joined):
        raise PipelineError(f"bootstrap_servers={joined!r}: write host:port, say localhost:9092")
    schemas = {"key": read_schema(key_schema, "key_schema"), "value": read_schema(schema, "schema")}
    return Source(name, joined, schemas)


def _stream(spark: SparkSession, source: Source, starting: Any) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", source.bootstrap_servers)
        .option("subscribe", source.name)
        .option("startingOffsets", _starting_offsets(source.name, starting))
        .option("includeHeaders", True)
        .load()
    )


def _starting_offsets(name: str, starting: Any) -> str:
    if starting in ("earliest", "latest"):
        return str(starting)
    if isinstance(starting, Mapping) and starting:
        offsets = {str(int(partition)): int(offset) for partition, offset in starting.items()}
        return json.dumps({name: offsets})
    raise PipelineError(
        f"starting={starting!r}: write 'earliest', 'latest' or an offset for each partition, "
        "such as {0: 4711, 1: 815}"
    )


def sources_of(frame: DataFrame) -> list[Source]:
    """Return the sources that a frame is made from, found by the metrics in its plan."""
    found: dict[str, Source] = {}
    plans = [frame._jdf.queryExecution().analyzed()]
    while plans:
        plan = plans.pop()
        if plan.nodeName() == "CollectMetrics" and plan.name() in SOURCES:
            found[plan.name()] = SOURCES[plan.name()]
        children = plan.children()
        plans += [children.apply(index) for index in range(children.size())]
    return list(found.values())
