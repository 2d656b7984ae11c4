"""Records as a batch frame with the columns of Spark's Kafka source."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.kafka.records import Record

_JSON: Final = (
    "array<struct<key string, value string, topic string, partition int, offset bigint, "
    "time bigint, headers array<struct<key string, value string>>>>"
)
_COLUMNS: Final = (
    "unbase64(key) AS key",
    "unbase64(value) AS value",
    "topic",
    "partition",
    "offset",
    "timestamp_millis(time) AS timestamp",
    "transform(headers, h -> struct(h.key AS key, unbase64(h.value) AS value)) AS headers",
)


def raw_frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """Return these records as rows, with the columns that the source has and a pipeline reads.

    They go to the JVM as one text: rows one by one, or a Python worker, take far longer.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    text = json.dumps(
        [
            {
                "key": _base64(record.key),
                "value": _base64(record.value),
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "time": record.timestamp_ms,
                "headers": record.headers
                and [{"key": name, "value": _base64(value)} for name, value in record.headers],
            }
            for record in records
        ]
    )
    rows = spark.range(1).select(F.inline(F.from_json(F.lit(text), _JSON)))
    return rows.selectExpr(*_COLUMNS)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")
