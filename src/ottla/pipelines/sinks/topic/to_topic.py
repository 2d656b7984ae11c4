"""`to_topic`: a stream into a topic; see `sinks.topic.sink`."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.kafka.settings import read_settings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.start import start_or_write
from ottla.pipelines.sinks.topic.columns import Given, RecordColumns
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def to_topic(
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
        trigger, on_lost, on_rejects, group: as for `to_delta`.

    Exactly once holds for each row, and for a query that computes the same rows from the same
    records again: without rand(), uuid() and look-ups in tables that change. A batch is several
    transactions, so its rows do not become visible at one moment.

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
