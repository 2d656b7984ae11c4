"""`TopicSink`: batches into a topic; with `once` each row once, whatever is killed.

Spark computes a batch that was cut off again, from the same offsets. It may cut the batch into
other partitions then, in another order, so Spark's own partitions cannot say what is written. This
sink makes its own: each row belongs to the task that the hash of its key names (of its value,
without a key), and the number of tasks is kept in the checkpoint. So a batch that is tried again
has the same rows in each task, as long as the query computes the same rows: no `rand()`, no
`uuid()`, no look-up in a table that changes.

Each task is one transaction with a mark of its own (`sinks.topic.task`): under read_committed the
rows of one task become visible together, those of two tasks one after the other. In a local Spark a
batch may be one transaction with all marks (`sinks.topic.one_transaction`). Marks are commits of a
consumer group, so no record of ours stands in the topic, and the marks need no topic of their own.

Rows of one key keep the order in which Spark has them in one partition; for rows as `topic` gives
them that is the order of their offsets.

Without `once` (at least once) Spark's own Kafka sink writes the batch, and a batch that was cut off
may be there twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint import next_batch
from ottla.pipelines.checkpoint.document import Document, Folder
from ottla.pipelines.checkpoint.identity import FILE
from ottla.pipelines.checkpoint.next_batch import Held, Planned, Refuse, Skip, decide, digest
from ottla.pipelines.checkpoint.topic_watch import TopicWatch
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.destination import Destination
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka import committed
from ottla.pipelines.kafka.brokers import Brokers, look_up, why_silent
from ottla.pipelines.sinks.topic import task as topic_task
from ottla.pipelines.sinks.topic.columns import MadeColumns, RecordColumns
from ottla.pipelines.sinks.topic.failures import FAILURES
from ottla.pipelines.sinks.topic.one_transaction import OneTransaction
from ottla.pipelines.sinks.topic.task import (
    ByteArrays,
    NotWrittenError,
    TaskOfBatch,
    rows_of,
)
from ottla.pipelines.spark.jvm.byte_rows import bytes_of
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import read_metadata
from ottla.pipelines.target.port import NO_VERSION, Capabilities, Sink

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.checkpoint.identity import Identity
    from ottla.pipelines.kafka.settings import KafkaSettings
    from ottla.pipelines.target.port import Batch

TRANSACTION_TIMEOUT: Final = "transaction.timeout.ms"
MARKS_KEPT: Final = "offsets.retention.minutes"
DEFAULT_MARKS_KEPT_MIN: Final = 10_080
"""Kafka's default (KIP-186), where the broker does not tell its own."""


def _read_tasks(document: dict[str, Any]) -> int:
    tasks = int(document["tasks"])
    if tasks < 1:
        raise ValueError(tasks)
    return tasks


TASKS: Final = Document("ottla-topic.json", _read_tasks, lambda tasks: {"tasks": tasks})
"""The number of tasks of each batch, `{"version": 1, "tasks": n}`: it is written before the first
batch and stays."""


def kept_tasks(folder: Folder) -> int | None:
    """Return the number of tasks that a checkpoint keeps, None for a new one.

    Raises PipelineError for one that has lost it: by another number the rows of a batch that was
    cut off would be divided otherwise, so that some are written twice and others never.
    """
    tasks = TASKS.read(folder)
    if tasks is None and folder.read(FILE) is not None:
        raise PipelineError(
            f"{folder.location}/{TASKS.name} is missing, which says into how many tasks the rows "
            "of a batch are divided. Restore it, or use a new checkpoint"
        )
    return tasks


_WATCH_ADVICE: Final = "Use a new checkpoint to write the new topic from the beginning"

_ORDER: Final = "__ottla_order"

# The settings of an exactly-once producer, where the caller gives no others. Keys go to the same
# partitions as with Java's clients and Spark's own sink.
PRODUCER: Final = {
    "partitioner": "murmur2_random",
    TRANSACTION_TIMEOUT: "300000",
    # A producer that connects only where it must looks for its transaction's coordinator again
    # after 50 or 500 ms, because it has no connection at first. Each task has a new producer.
    "enable.sparse.connections": "false",
}


@dataclass(frozen=True)
class TopicTarget:
    """The topic that is written: `producer` has the settings of producers alone, by librdkafka's
    names.
    """

    name: str
    kafka: KafkaSettings
    columns: RecordColumns = field(default_factory=RecordColumns)
    producer: Mapping[str, str] = field(default_factory=dict)


@dataclass
class TopicSink(Sink):
    """A topic as the target of a pipeline's rows.

    `checkpoint` keeps `tasks`, the number of tasks of each batch, which must not change while the
    checkpoint lives, and is at most the number of the topic's partitions. Both `tasks` and
    `topic_id` are known when the sink is checked.
    """

    kind = "topic"
    called = "a topic"
    place_is = "topic"
    failures = FAILURES
    spark: SparkSession
    target: TopicTarget
    checkpoint: str | os.PathLike[str]
    tasks: int = 1
    topic_id: str = ""
    capabilities = Capabilities(keeps_rejects=False, is_shared=True, in_parts=True)
    _client: Brokers | None = field(default=None, init=False, repr=False)
    _watch: TopicWatch | None = field(default=None, init=False, repr=False)
    _one_transaction: OneTransaction | None = field(default=None, init=False, repr=False)
    _made: MadeColumns | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """What a person looks for."""
        return f"topic {self.target.name}"

    @property
    def shown(self) -> str:
        """What a person looks for."""
        return self.name

    @property
    def short_name(self) -> str:
        """The name of the topic."""
        return self.target.name

    @property
    def location(self) -> str:
        """The topic; its id says on which cluster it is."""
        return self.name

    @property
    def destination(self) -> Destination:
        """What the journey says of the topic."""
        return replace(super().destination, place=self.target.name)

    @property
    def servers(self) -> tuple[str, ...]:
        """The brokers of the topic."""
        return (self.target.kafka.bootstrap_servers,)

    def check(self) -> list[str]:
        """Look the topic up, and find the number of tasks; nothing changes in it.

        Raises PipelineError: brokers that do not answer, a topic that does not exist or has too few
        partitions.
        """
        state = look_up(self.target.kafka, [self.target.name]).topics[self.target.name]
        partitions = len(state.latest)
        cores = self.spark.sparkContext.defaultParallelism
        self.topic_id = state.topic_id
        self.tasks = kept_tasks(self._files) or max(1, min(partitions, cores))
        if partitions < self.tasks:
            raise PipelineError(
                f"Topic {self.target.name!r} has {partitions} partitions, and the checkpoint "
                f"{self.checkpoint} writes it with {self.tasks} tasks: use a new checkpoint"
            )
        return state.notices()

    @property
    def _files(self) -> Files:
        return Files(self.spark, os.fspath(self.checkpoint))

    def make(self) -> None:
        """Keep the number of tasks in the checkpoint; the topic exists."""
        TASKS.write(self._files, self.tasks)
        self._watch = TopicWatch(
            {self.target.name: self.topic_id},
            lambda: self._brokers.topic_ids([self.target.name]),
            advice=_WATCH_ADVICE,
        )

    @property
    def _brokers(self) -> Brokers:
        """A client that stays: it has threads, pipes and connections of its own."""
        if self._client is None:
            self._client = Brokers(self.target.kafka)
        return self._client

    def close(self) -> None:
        """Let the client go, which closes it, and close the producer."""
        self._client = None
        if self._one_transaction is not None:
            self._one_transaction.close()
            self._one_transaction = None

    def table_id(self) -> str:
        """Return the topic's id as it was when the sink was checked."""
        return self.topic_id

    def wrong_owner(self, identity: Identity | None, checkpoint: str) -> str | None:
        """Return why the checkpoint of this record cannot write here, None when it can."""
        if identity is None or identity.table_id == self.topic_id:
            return None
        if identity.table_location == self.location:
            return (
                f"Topic {self.target.name!r} was deleted and created again since the checkpoint "
                f"{checkpoint} last wrote to it, or is on another cluster: earlier rows would be "
                "missing. Use a new checkpoint to write all of it again, or starting= to choose "
                "where it begins"
            )
        return (
            f"The checkpoint {checkpoint} belongs to {identity.table_location}, not to "
            f"{self.shown}. Use a new checkpoint for this topic"
        )

    def check_start(self, topic: str, *, continues: bool) -> None:
        """Refuse starting="table": a topic does not keep where a query ended."""
        if continues:
            raise PipelineError(
                "starting='table' needs a table: with to_topic() write 'earliest', 'latest', a "
                "time or offsets"
            )

    def check_repeat(self, delivery: DeliveryGuarantee, begun_ms: int, checkpoint: str) -> None:
        """Refuse to repeat a batch that is older than its marks may be.

        Brokers remove a group's commits some time after they were made. Without marks nobody knows
        which tasks of the batch are written. At-most-once repeats no batch.
        """
        if delivery is not DeliveryGuarantee.EXACTLY_ONCE:
            return
        limit_min = int(self._brokers.setting(MARKS_KEPT) or DEFAULT_MARKS_KEPT_MIN)
        if time.time() * 1_000 - begun_ms > limit_min * 60_000:
            raise PipelineError(
                f"The last batch of the checkpoint {checkpoint} was cut off more than {limit_min} "
                f"minutes ago, and brokers keep no longer ({MARKS_KEPT}) which part of it is "
                "written. Start once with delivery='at-least-once', which may write its rows "
                "twice, or use a new checkpoint"
            )

    def check_running(self) -> None:
        """Refuse a topic that was deleted and created again since the query started."""
        if self._watch is not None:
            self._watch.check()

    def why_silent(self) -> str | None:
        """Return why the topic cannot be written now, None when it can."""
        return why_silent([(self.target.kafka, self.target.name)])

    def write(self, frame: DataFrame, batch: Batch) -> int:
        """Write a batch; of one that was written in part, what is missing.

        The marks keep a digest of where the batch ends. Raises PipelineError where the topic has
        another batch of this number, from a copy of the checkpoint.
        """
        target = self.target
        if not batch.once:
            records = self._records(frame)
            options = target.kafka.for_spark_producer(target.producer)
            records.write.format("kafka").options(**options).option("topic", target.name).save()
            return NO_VERSION
        commit = read_metadata(batch.metadata)
        ends = "" if commit is None else digest(commit.offsets)
        begins = batch.begins
        if begins is not None and not isinstance(begins, str):
            begins = digest(begins)
        # A task compares its own mark. If it refuses, another one may have written its rows.
        held = self.held(batch.query_id)
        answer = decide(Planned(batch.checkpoint, batch.number, begins, ends), held)
        if isinstance(answer, Refuse):
            raise PipelineError(answer.sentence)
        task = TaskOfBatch(
            target.name,
            group_of(batch.query_id),
            batch.number,
            target.kafka.for_executors(),
            PRODUCER | dict(target.producer),
            ends,
            begins or "",
        )
        records = self._records(frame)
        is_whole = self._whole(records, task)
        if is_whole:
            return NO_VERSION
        if is_whole is not None:
            batch.forget_counted()  # the transaction may have read rows, and the tasks read all
        _send_by_value()

        def write(number: int, fields: Iterable[bytes | None]) -> Iterator[int]:
            return task.write(number, rows_of(fields))

        fields_of(in_tasks(records, self.tasks)).mapPartitionsWithIndex(write).collect()
        return NO_VERSION

    def _records(self, frame: DataFrame) -> DataFrame:
        """Return the records of a batch, whose frame mostly has the schema of the one before."""
        if self._made is None or self._made.schema != frame.schema:
            self._made = self.target.columns.made_for(frame)
        return self._made.records(frame)

    def _whole(self, records: DataFrame, batch: TaskOfBatch) -> bool | None:
        """Write a batch in one transaction; return False where that failed, None where it cannot
        be, and was not tried."""
        if self._one_transaction is None:
            options = self.target.kafka.for_spark_producer(self.target.producer)
            settings = {name.removeprefix("kafka."): value for name, value in options.items()}
            own = PRODUCER | dict(self.target.producer)
            settings[TRANSACTION_TIMEOUT] = own[TRANSACTION_TIMEOUT]
            self._one_transaction = OneTransaction(self.spark, settings, self.tasks)
        if not self._one_transaction.takes(records):
            return None

        def has_part() -> bool:
            try:
                texts = self._brokers.settled(batch.group, batch.topic, range(self.tasks))
            except PipelineError as error:
                raise NotWrittenError(str(error)) from error
            marks = map(topic_task.read_mark, texts)
            planned = Planned("", batch.batch, batch.begins or None, batch.ends)
            answer = decide(planned, topic_task.held_of(self.shown, marks))
            if isinstance(answer, Refuse):
                raise PipelineError(answer.sentence)
            return isinstance(answer, Skip)

        return self._one_transaction.write(records, batch, has_part)

    def held(self, query_id: str) -> Held:
        """Return what the topic has of a query, by the marks of its tasks.

        A task without rows leaves no mark, and brokers remove marks some day: there may be newer
        batches. Raises PipelineError: the brokers do not answer.
        """
        group, name = group_of(query_id), self.target.name
        texts = self._brokers.committed(group, name, range(self.tasks))
        return topic_task.held_of(self.shown, map(topic_task.read_mark, texts))


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

    for module in (topic_task, next_batch, committed):
        cloudpickle.register_pickle_by_value(module)
