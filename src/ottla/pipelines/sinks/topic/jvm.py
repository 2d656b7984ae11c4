"""A producer with transactions in the JVM of a local Spark, which Spark's own Kafka sink uses.

Spark's tasks take their producers from a pool of their JVM, by their settings (Spark's
InternalKafkaProducerPool, KafkaWriteTask). In a local Spark that is the driver's JVM: who takes the
producer of the same settings before has the one with which the tasks write, and can begin and
commit its transaction. Spark itself does neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_frame
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.failures.cause import Cause

_KAFKA: Final = "org.apache.spark.sql.kafka010"
_POOL: Final = f"{_KAFKA}.producer.InternalKafkaProducerPool$"
_WRITER: Final = f"{_KAFKA}.KafkaWriter$"
_CLIENTS: Final = "org.apache.kafka.clients"
_SERIALIZER: Final = "org.apache.kafka.common.serialization.ByteArraySerializer"
_ERRORS: Final = "org.apache.kafka."
_INTERRUPTED: Final = f"{_ERRORS}common.errors.InterruptException"
_CLOSE_WITHIN_S: Final = 5


def has_producers(spark: SparkSession) -> bool:
    """Tell whether this Spark has the classes of `BatchProducer`."""
    return all(first_class(spark, [name]) is not None for name in (_POOL, _WRITER))


class BatchProducer:
    """The producer of a transactional id, from its start on the only one that can commit.

    `settings` are those of Java's producer. Methods raise py4j's Py4JJavaError, or PySpark's
    copy of Java's exception.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self._spark = spark
        self._settings = java_class(spark, "java.util.HashMap")()
        serializers = dict.fromkeys(("key.serializer", "value.serializer"), _SERIALIZER)
        for name, value in (serializers | dict(settings)).items():
            self._settings.put(name, value)
        self._pool = getattr(java_class(spark, _POOL), "MODULE$")
        self._taken = self._pool.acquire(self._settings)
        self._client = self._taken.producer()

    def start(self) -> None:
        """End what an earlier producer of this id left open (InitProducerId)."""
        self._client.initTransactions()

    def is_shared(self) -> bool:
        """Tell whether a task would get this producer.

        It would get another one with a delegation token that was renewed: the settings in the pool
        have it (Spark's KafkaConfigUpdater).
        """
        found = self._pool.acquire(self._settings)
        try:
            return bool(found.producer().equals(self._client))
        finally:
            self._pool.release(found)

    def begin(self) -> None:
        """Begin a transaction."""
        self._client.beginTransaction()

    def write(self, records: DataFrame, topic: str) -> None:
        """Send the rows of a frame, by Spark's own sink; returns when all are acknowledged."""
        writer = getattr(java_class(self._spark, _WRITER), "MODULE$")
        target = java_class(self._spark, "scala.Option").apply(topic)
        writer.write(java_frame(records).queryExecution(), self._settings, target)

    def commit(self, group: str, topic: str, partitions: Iterable[int], metadata: str) -> None:
        """Commit the transaction, and in it a group's commits of offset 0 for these partitions."""
        partition_of = java_class(self._spark, "org.apache.kafka.common.TopicPartition")
        offset_of = java_class(self._spark, f"{_CLIENTS}.consumer.OffsetAndMetadata")
        members = java_class(self._spark, f"{_CLIENTS}.consumer.ConsumerGroupMetadata")
        offsets = java_class(self._spark, "java.util.HashMap")()
        for number in partitions:
            offsets.put(partition_of(topic, number), offset_of(0, metadata))
        self._client.sendOffsetsToTransaction(offsets, members(group))
        self._client.commitTransaction()

    def abort(self) -> None:
        """Abort the transaction: readers then do not wait for its timeout."""
        self._client.abortTransaction()

    def close(self) -> None:
        """Close the producer: a task that still runs can send nothing more."""
        seconds = java_class(self._spark, "java.time.Duration").ofSeconds(_CLOSE_WITHIN_S)
        try:
            self._client.close(seconds)
        finally:
            self._pool.release(self._taken)


def kafka_failure(error: BaseException) -> Cause | None:
    """Return Kafka's exception behind a failure, None where Kafka is not why."""
    found = [cause for cause in causes_of(error) if cause.kind.startswith(_ERRORS)]
    return found[0] if found and found[0].kind != _INTERRUPTED else None


def may_pass(spark: SparkSession, kind: str) -> bool:
    """Tell whether another attempt may succeed, by the class of Kafka's exception."""
    classes = java_class(spark, "java.lang.Class")
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    retriable = classes.forName(f"{_ERRORS}common.errors.RetriableException", False, loader)
    return bool(retriable.isAssignableFrom(classes.forName(kind, False, loader)))
