"""`TopicSink`: batches into a topic; with `once` each row once, whatever is killed.

Spark computes a batch that was cut off again, from the same offsets. It may cut the batch into
other partitions then, in another order, so Spark's own partitions cannot say what is written. This
sink makes its own: each row belongs to the task that the hash of its key names (of its value,
without a key), and the number of tasks is kept in the checkpoint. So a batch that is tried again
has the same rows in each task, as long as the query computes the same rows: no `rand()`, no
`uuid()`, no look-up in a table that changes.

Each task is one transaction with a mark of its own (`sinks.topic_task`). A batch is not one
transaction: under read_committed the rows of one task become visible together, those of two tasks
one after the other. Marks are commits of a consumer group, so no record of ours stands in the
topic, and the marks need no topic of their own.

Rows of one key keep the order in which Spark has them in one partition; for rows as `topic` gives
them that is the order of their offsets.

Without `once` (at least once) Spark's own Kafka sink writes the batch, and a batch that was cut off
may be there twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint import next_batch
from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.kafka.brokers import Brokers
from ottla.pipelines.sinks import topic_task
from ottla.pipelines.sinks.topic_columns import RecordColumns
from ottla.pipelines.sinks.topic_task import ByteArrays, TaskOfBatch, rows_of
from ottla.pipelines.spark.jvm.byte_rows import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from ottla.pipelines.kafka.settings import KafkaSettings
    from ottla.pipelines.sinks.port import Batch

_ORDER: Final = "__ottla_order"

# The settings of an exactly-once producer, where the caller gives no others. Keys go to the same
# partitions as with Java's clients and Spark's own sink.
PRODUCER: Final = {
    "partitioner": "murmur2_random",
    "transaction.timeout.ms": "300000",
    # A producer that connects only where it must looks for its transaction's coordinator again
    # after 50 or 500 ms, because it has no connection at first. Each task has a new producer.
    "enable.sparse.connections": "false",
}


@dataclass
class TopicSink:
    """A topic as the place where a pipeline's rows go.

    `producer` has the settings of producers alone, by librdkafka's names; `tasks` is the number
    of tasks of each batch, which must not change while the checkpoint lives, and is at most the
    number of the topic's partitions.
    """

    topic: str
    kafka: KafkaSettings
    columns: RecordColumns = field(default_factory=RecordColumns)
    producer: Mapping[str, str] = field(default_factory=dict)
    tasks: int = 1
    deliveries: frozenset[DeliveryGuarantee] = field(default=frozenset(DeliveryGuarantee))

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return self.topic

    @property
    def shown(self) -> str:
        """What a person looks for."""
        return f"topic {self.topic}"

    def make(self) -> None:
        """Do nothing: a plan refuses a topic that does not exist."""

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write a batch; of one that was written in part, what is missing.

        The batch's metadata is the digest of where it ends, which the marks keep.
        """
        records = self.columns.records(frame)
        if not batch.once:
            options = self.kafka.for_spark_producer(self.producer)
            records.write.format("kafka").options(**options).option("topic", self.topic).save()
            return
        task = TaskOfBatch(
            self.topic,
            group_of(batch.query_id),
            batch.number,
            self.kafka.for_executors(),
            PRODUCER | dict(self.producer),
            batch.metadata,
            batch.begins if isinstance(batch.begins, str) else "",
        )
        _send_by_value()

        def write(number: int, fields: Iterable[bytes | None]) -> Iterator[int]:
            return task.write(number, rows_of(fields))

        fields_of(in_tasks(records, self.tasks)).mapPartitionsWithIndex(write).collect()

    def held(self, query_id: str, brokers: Brokers | None = None) -> Held:
        """Return what the topic has of a query, by the marks of its tasks.

        A task without rows leaves no mark, and brokers remove marks some day: there may be newer
        batches. `brokers`: a client that stays. Raises PipelineError: the brokers do not answer.
        """
        client = brokers or Brokers(self.kafka)
        texts = client.committed(group_of(query_id), self.topic, range(self.tasks))
        return topic_task.held_of(self.shown, map(topic_task.read_mark, texts))

    def version_of(self, query_id: str, batch: int) -> None:
        """Return None: a topic has no versions."""


def group_of(query_id: str) -> str:
    """The group that holds a query's marks; also the beginning of its transactional ids."""
    return f"ottla-{query_id}"


def in_tasks(records: DataFrame, tasks: int) -> DataFrame:
    """Return the records in this many partitions, by their content alone.

    Spark's partitioning by hash is the one of its bucketed tables (Murmur3), which stays the same
    from version to version.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.selectExpr("*", f"monotonically_increasing_id() AS {_ORDER}")
        .repartition(tasks, F.expr("coalesce(key, value)"))
        .sortWithinPartitions(_ORDER)
        .drop(_ORDER)
    )


def fields_of(records: DataFrame) -> RDD[bytes | None]:
    """Return each record's key, value and headers in turn, as `topic_task.rows_of` reads them."""
    # As SQL: each part of a Column is a call of the JVM, for each batch.
    headers = "CAST(to_json(headers, map('ignoreNullFields', 'false')) AS BINARY)"
    pairs = records.selectExpr("key AS _1", f"struct(value AS _1, {headers} AS _2) AS _2")
    return bytes_of(pairs, ByteArrays())


def _send_by_value() -> None:
    """Let Spark send the task's code to its workers, which then work without Ottla."""
    from pyspark import cloudpickle

    for module in (topic_task, next_batch):
        cloudpickle.register_pickle_by_value(module)
