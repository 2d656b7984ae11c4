"""Rejected rows as records of a topic, besides the table that has them: a dead-letter topic.

A record keeps its key, value and headers. Headers with the names of Kafka Connect (KIP-298) say
where it comes from and why it was rejected, so that tools for such topics find them:

    __connect.errors.topic, .partition, .offset     the position of the record
    __connect.errors.exception.message              the reason
    __connect.errors.connector.name                 the query
    ottla.timestamp                                 the record's time, in ms since 1970
    ottla.row                                       "true": the value is the row that was refused

The last two are Ottla's own: `ottla pipeline replay` needs them.

Each row is there at least once: it is written before the table's commit, and again when that
commit is repeated. The table has each row once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX: Final = "__connect.errors."
OWN_PREFIX: Final = "ottla."
TIME_HEADER: Final = f"{OWN_PREFIX}timestamp"
ROW_HEADER: Final = f"{OWN_PREFIX}row"
_HEADERS: Final = "array<struct<key string, value binary>>"
_HAS_BYTES: Final = "value"
_ROW: Final = "row"


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The topic, which exists on the cluster of the source."""

    topic: str
    kafka: KafkaSettings

    def write(self, rejected: DataFrame, query: str) -> None:
        """Write rejected rows with Spark's own sink, and wait for it."""
        options = self.kafka.for_spark_producer({})
        records = dead_letters(rejected, query)
        records.write.format("kafka").options(**options).option("topic", self.topic).save()


def dead_letters(rejected: DataFrame, query: str) -> DataFrame:
    """Return rejected rows as records: `key`, `value`, `headers`.

    A row that a constraint of the table refuses has no bytes of its own: its value is the JSON in
    the column `row`.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    names = rejected.columns

    def given(name: str, kind: str) -> Column:
        return F.col(name) if name in names else F.lit(None).cast(kind)

    value = given(_HAS_BYTES, "binary")
    if _ROW in names:
        value = F.coalesce(value, F.encode(_ROW, "UTF-8"))
    added = {
        "topic": given("topic", "string"),
        "partition": given("partition", "int").cast("string"),
        "offset": given("offset", "bigint").cast("string"),
        "exception.message": F.col("reason"),
        "connector.name": F.lit(query),
    }
    time = F.unix_millis(given("timestamp", "timestamp")).cast("string")
    is_row = given(_HAS_BYTES, "binary").isNull() & given(_ROW, "string").isNotNull()
    own = {TIME_HEADER: time, ROW_HEADER: F.when(is_row, F.lit("true"))}
    headers = F.array(
        *(
            F.struct(F.lit(name).alias("key"), F.encode(column, "UTF-8").alias("value"))
            for name, column in ({PREFIX + name: one for name, one in added.items()} | own).items()
        )
    )
    of_record = F.coalesce(given("headers", _HEADERS), F.array().cast(_HEADERS))
    present = F.filter(headers, lambda header: header["value"].isNotNull())
    known = F.concat(of_record, present)
    return rejected.select(
        given("key", "binary").alias("key"), value.alias("value"), known.alias("headers")
    )
