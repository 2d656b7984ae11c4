"""`to_topic`: a stream into a topic; plans the query and starts it.

The delivery decides what a kill leaves: see `delivery` and `sinks.topic`.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.identity.lease import Lease
from ottla.pipelines.identity.record import FILE
from ottla.pipelines.identity.topic_watch import TopicWatch
from ottla.pipelines.kafka.brokers import Brokers, look_up
from ottla.pipelines.kafka.settings import read_settings, split_producer
from ottla.pipelines.progress.report import report_query
from ottla.pipelines.run.failures import About
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.interrupt import interruptible
from ottla.pipelines.run.local_files import local_files
from ottla.pipelines.run.report import reported
from ottla.pipelines.run.spark_log import route_failures
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.topic_batch import TopicBatchRunner
from ottla.pipelines.run.topic_plan import TopicPlan, TopicTarget, keep_tasks, plan_topic
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.topic_columns import Given, RecordColumns
from ottla.pipelines.source.starting import write_initial_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.progress.state import Run

log: Final = logging.getLogger("ottla.pipelines")

_WATCH_ADVICE: Final = "Use a new checkpoint to write the new topic from the beginning"


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
        trigger, on_lost, group: as for `to_delta`.

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
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
        raise PipelineError(
            f"{name!r} is no topic's name: letters, digits, '.', '_' and '-', at most 249"
        )
    specification = Specification(
        df,
        name,
        checkpoint,
        trigger=trigger,
        delivery=delivery,
        on_lost=on_lost,
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
    with interruptible(), reported(_about_topic(name, str(checkpoint))):
        return start_topic(plan_topic(specification, target))


def _about_topic(name: str, checkpoint: str) -> About:
    return About(target=f"topic {name}", checkpoint=checkpoint)


def start_topic(checked: TopicPlan, run: Run | None = None) -> StreamingQuery:
    """Carry out a plan: acquire the checkpoint, write the identity, run.

    `run`: the run that is already reported to the group; the query continues it.
    Raises PipelineError: another query runs on this checkpoint, or Spark refuses the query.
    """
    specification = checked.specification
    route_failures(specification.frame.sparkSession, os.environ)
    with reported(_about_topic(checked.sink.name, str(specification.checkpoint))):
        return _carry_out(checked, run)


def _carry_out(checked: TopicPlan, run: Run | None) -> StreamingQuery:
    specification, checkpoint = checked.specification, checked.checkpoint
    spark = specification.frame.sparkSession
    if checkpoint.query_id() in [query.id for query in spark.streams.active]:
        raise PipelineError(
            f"A query of this session runs on the checkpoint {specification.checkpoint} already. "
            "Stop that query first, or use another checkpoint"
        )
    lease = Lease(checkpoint.files)
    lease.acquire()
    try:
        for notice in checked.notices:
            log.warning("%s", notice)
        _prepare_checkpoint(checked)
        runner = _runner(checked)
        query = _run(checked, runner)
    except BaseException:
        lease.release()
        raise
    lease.keep(lambda: bool(query.isActive), query.stop)
    QUERIES[query.id] = runner
    if specification.group is not None:
        report_query(
            spark,
            query,
            group=specification.group,
            settings=checked.sources[0][1].kafka.for_librdkafka(),
            ends_by_itself=specification.ends_by_itself,
            run=run,
        )
    return query


def _prepare_checkpoint(checked: TopicPlan) -> None:
    """Record what belongs together; make room for a new query and write its first offsets.

    A move is noted before it begins, and the note is removed when all is in place.
    """
    checkpoint = checked.checkpoint
    identity = checked.identity(checked.replacing)
    keep_tasks(checkpoint.files, checked.sink.tasks)
    if checked.replacing is not None:
        checkpoint.files.write(FILE, identity.text())
        checkpoint.replace(checked.replacing.number)
    if checked.starting is not None:
        checkpoint.files.delete("sources")
        spark = checked.specification.frame.sparkSession
        for number, source in checked.sources:
            first = {source.name: checked.starting[source.name]}
            write_initial_offsets(spark, checkpoint.files.location, number, first)
    checkpoint.files.write(FILE, replace(identity, replacing=None).text())


def _runner(checked: TopicPlan) -> TopicBatchRunner:
    sources = tuple(source for _, source in checked.sources)
    sink = checked.sink
    # The same clients as long as the query runs.
    brokers = {kafka: Brokers(kafka) for kafka in (sink.kafka, *(each.kafka for each in sources))}

    def ask() -> dict[str, str]:
        ids: dict[str, str] = {}
        for source in sources:
            ids |= brokers[source.kafka].topic_ids([source.name])
        return ids

    return TopicBatchRunner(
        checked.specification.frame.sparkSession,
        sink,
        checked.checkpoint,
        DeliveryGuarantee(checked.specification.delivery),
        sources,
        (
            TopicWatch(checked.topic_ids, ask),
            TopicWatch(
                {sink.name: checked.topic_id},
                lambda: brokers[sink.kafka].topic_ids([sink.name]),
                advice=_WATCH_ADVICE,
            ),
        ),
    )


def _run(checked: TopicPlan, runner: TopicBatchRunner) -> StreamingQuery:
    from ottla.pipelines.run.query import supervised

    specification, sink = checked.specification, checked.sink
    location = checked.checkpoint.files.location
    guard = BatchGuard(runner)
    writer = specification.frame.writeStream.foreachBatch(guard)
    writer = writer.option("checkpointLocation", location)
    name = re.sub(r"\W+", "_", sink.name)
    if name not in [query.name for query in runner.spark.streams.active]:
        writer = writer.queryName(name)
    if specification.trigger:
        writer = writer.trigger(**specification.trigger)
    if runner.query_id():
        # A former run's checkpoint: its listeners ask for it while the query starts.
        QUERIES[runner.query_id()] = runner
    kafkas = (*(source.kafka for _, source in checked.sources), sink.kafka)
    about = About(
        query=name,
        target=sink.shown,
        checkpoint=location.removeprefix("file:"),
        topics=tuple(source.name for _, source in checked.sources),
        servers=",".join(dict.fromkeys(kafka.bootstrap_servers for kafka in kafkas)),
    )

    def start_query() -> StreamingQuery:
        with local_files(runner.spark, location):
            return writer.start()

    probe = functools.partial(_probe, checked)
    return supervised(start_query, guard, about, probe, runner.finish)


def _probe(checked: TopicPlan) -> str | None:
    """Return why a topic cannot be read or written now, None when all can."""
    try:
        for _, source in checked.sources:
            look_up(source.kafka, [source.name])
        look_up(checked.sink.kafka, [checked.sink.name])
    except PipelineError as error:
        return str(error)
    return None
