"""`to_topic`: a stream into a topic; see `sinks.topic.sink`."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.failures.known import Known
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.start import start_or_write
from ottla.pipelines.sinks.topic.columns import Given, RecordColumns
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget
from ottla.pipelines.spec.option import Option, option
from ottla.pipelines.spec.servers import read_servers
from ottla.pipelines.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.spec.fields import Fields
    from ottla.pipelines.spec.sink import Reading
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class TopicSpec(SinkSpec):
    """A topic, with `to_topic()`'s arguments."""

    title: ClassVar[str] = "`[sink]` with `topic`: a topic"
    marked_by: ClassVar[str] = "topic"
    besides: ClassVar[tuple[Option, ...]] = (
        Option(
            "bootstrap_servers",
            "the brokers; by default those of `[source]`",
            takes="as in `[source]`",
        ),
    )
    keeps_rejects: ClassVar[bool] = False
    failures: ClassVar[tuple[Known, ...]] = TopicSink.failures
    others: ClassVar[str] = "is for tables, and this sink writes a topic: leave one out"

    topic: str = option("the topic to write", example="late-flights", required=True)
    kafka: KafkaSettings = option(
        "the settings of its cluster and its producer; by default those of `[source.kafka]`",
        "other",
        takes="table",
        secret=True,
    )
    producer: tuple[tuple[str, str], ...] = ()
    key: str | None = option("the key, as SQL", default=None, example="carrier")
    value: str | None = option("the value, as SQL", default=None, example="struct(flight, delay)")
    headers: str | None = option("the headers, as SQL", default=None, example="headers")

    @property
    def target(self) -> str:
        """The topic in a sentence."""
        return f"topic {self.topic}"

    @property
    def written_topic(self) -> tuple[KafkaSettings, str]:
        """The topic and how its cluster is reached."""
        return self.kafka, self.topic

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives.

        Without `bootstrap_servers` both topics are on one cluster, and `[source.kafka]` holds for
        both.
        """
        if given["topic"] and (wrong := wrong_name(given["topic"])):
            fields.problem("topic", wrong)
        try:
            settings, producer = split_producer(dict(fields.settings("kafka")))
        except PipelineError as error:
            fields.problem("kafka", str(error))
            settings, producer = {}, {}
        kafka = read_servers(fields, settings, about.source) or KafkaSettings("")
        return cls(**given, kafka=kafka, producer=tuple(producer.items()))

    def sink(self, asked: Specification) -> Sink:
        """Return the topic for the rows of a frame. Raises PipelineError."""
        columns = RecordColumns(self.key, self.value, self.headers)
        return topic_sink(asked, TopicTarget(self.topic, self.kafka, columns, dict(self.producer)))


def to_topic(  # noqa: PLR0913
    df: DataFrame,
    name: str,
    *,
    bootstrap_servers: str | Iterable[str],
    checkpoint: str | os.PathLike[str],
    key: Given = None,
    value: Given = None,
    headers: Given = None,
    delivery: str = "exactly-once",
    kafka: Mapping[str, Any] | None = None,
    trigger: Mapping[str, Any] | None = None,
    on_lost: str = "stop",
    on_rejects: str = "stop",
    group: str | None = None,
    expect: Mapping[str, str] | None = None,
    on_unexpected: str = "reject",
) -> StreamingQuery:
    """Start a query that writes a stream to a topic, which must exist.

    Args:
        df: a streaming frame, such as `topic` gives, with any projection or join on it.
        name: the topic, on any cluster.
        bootstrap_servers: those of the topic's cluster, "host:port,host:port" or a list.
        checkpoint: the folder where the query keeps its progress; one for each query.
        key: the column with the key, by name, as SQL or as a Column; None: records without a key.
        value: the column with the value; None: all columns as one JSON object. BINARY is taken as
            it is, STRING as UTF-8, nested types as JSON, all others as text; null is a tombstone.
        headers: a column array<struct<key string, value binary>>, as `topic` has it.
        delivery: "exactly-once" (each row once for readers with read_committed), "at-least-once"
            (Spark's own Kafka sink) or "at-most-once": what a kill may do.
        kafka: client settings by librdkafka's names, as for `topic`; also compression.type,
            linger.ms, batch.size, message.max.bytes and transaction.timeout.ms.
        trigger, on_lost, on_rejects, group, expect: as for `to_delta`.
        on_unexpected: "drop" or "stop", where there is `expect`: a topic keeps no rejected rows.

    Exactly once holds for each row, and for a query that computes the same rows from the same
    records again: without rand(), uuid() and look-ups in tables that change. A batch may be
    several transactions, so that its rows do not become visible at one moment.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves.

    Raises:
        PipelineError: a wrong argument; brokers, topics or a checkpoint that do not fit together;
            records that are lost.
    """
    require_pyspark()
    if wrong := wrong_name(name):
        raise PipelineError(wrong)
    specification = Specification(
        df,
        name,
        checkpoint,
        trigger=trigger,
        delivery=delivery,
        on_lost=on_lost,
        on_rejects=on_rejects,
        group=group,
        expect=expect,
        on_unexpected=on_unexpected,
        caller="to_topic",
    )
    client, producer = split_producer(kafka)
    target = TopicTarget(
        name,
        read_settings(bootstrap_servers, client),
        RecordColumns(key, value, headers),
        producer,
    )
    return start_or_write(
        specification,
        f"topic {name}",
        functools.partial(topic_sink, target=target),
        TopicSink.failures,
    )


def topic_sink(specification: Specification, target: TopicTarget) -> TopicSink:
    """Return the topic that a specification writes. Raises PipelineError."""
    frame = specification.frame
    if not frame.isStreaming:
        raise PipelineError(
            "to_topic takes a streaming frame, such as topic() gives. Write this one with Spark's "
            "own sink: df.write.format('kafka')"
        )
    target.columns.records(frame)
    return TopicSink(frame.sparkSession, target, specification.checkpoint)
