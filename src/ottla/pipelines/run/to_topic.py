"""`to_topic`: a stream into a topic; plans the query and starts it.

The delivery decides what a kill leaves: see `delivery` and `sinks.topic`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.identity import FILE
from ottla.pipelines.checkpoint.topic_watch import TopicWatch
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.failures.cause import About
from ottla.pipelines.kafka.settings import read_settings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.run.begin import (
    Clients,
    archive_old_state,
    begin,
    check_free,
    stream_writer,
    topic_ids_now,
    why_silent,
)
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.interrupt import interruptible
from ottla.pipelines.run.local_files import local_files
from ottla.pipelines.run.reported import reported
from ottla.pipelines.run.spark_log import route_failures
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.topic_batch import TopicBatchRunner
from ottla.pipelines.run.topic_plan import (
    TopicPlan,
    TopicTarget,
    check_next,
    keep_tasks,
    plan_topic,
)
from ottla.pipelines.sinks.topic_columns import Given, RecordColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.progress.state import Run
    from ottla.pipelines.run.query import PipelineQuery


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
    with interruptible(), reported(_about_topic(name, str(checkpoint))):
        check_free(specification)
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
    def start_runner(check_kept: Callable[[], None]) -> tuple[TopicBatchRunner, PipelineQuery]:
        _prepare_checkpoint(checked)
        clients = Clients()
        runner = _runner(checked, clients, check_kept)
        return runner, _run(checked, runner, clients)

    return begin(checked, run, start_runner)


def _prepare_checkpoint(checked: TopicPlan) -> None:
    """Record what belongs together, and make room for a new query."""
    checkpoint = checked.checkpoint
    identity = checked.identity(checked.replacing)
    keep_tasks(checkpoint.files, checked.sink.tasks)
    archive_old_state(checked, identity)
    checkpoint.files.write(FILE, replace(identity, replacing=None).text())


def _runner(
    checked: TopicPlan, clients: Clients, check_kept: Callable[[], None]
) -> TopicBatchRunner:
    sources = tuple(source for _, source in checked.sources)
    sink = checked.sink
    return TopicBatchRunner(
        checked.specification.frame.sparkSession,
        sink,
        checked.checkpoint,
        DeliveryGuarantee(checked.specification.delivery),
        sources,
        (
            TopicWatch(checked.topic_ids, topic_ids_now(sources, clients)),
            TopicWatch(
                {sink.name: checked.topic_id},
                lambda: clients.of(sink.kafka).topic_ids([sink.name]),
                advice=_WATCH_ADVICE,
            ),
        ),
        checks_first=checked.specification.on_rejects == "stop",
        brokers=lambda: clients.of(sink.kafka),
        check_kept=check_kept,
    )


def _run(checked: TopicPlan, runner: TopicBatchRunner, clients: Clients) -> PipelineQuery:
    from ottla.pipelines.run.query import supervised

    sink = checked.sink
    location = checked.checkpoint.files.location
    guard = BatchGuard(runner)
    frame = checked.specification.frame
    writer, name, _ = stream_writer(checked, frame, guard, sink.name, runner)
    kafkas = (*(source.kafka for _, source in checked.sources), sink.kafka)
    about = About(
        query=name,
        target=sink.shown,
        checkpoint=location.removeprefix("file:"),
        topics=tuple(source.name for _, source in checked.sources),
        servers=",".join(dict.fromkeys(kafka.bootstrap_servers for kafka in kafkas)),
    )

    def check_again() -> None:
        place = str(checked.specification.checkpoint)
        check_next(checked.checkpoint, place, sink, len(checked.sources))

    def start_query() -> StreamingQuery:
        with local_files(runner.spark, location):
            return writer.start()

    def probe() -> str | None:
        sources = ((source.kafka, source.name) for _, source in checked.sources)
        return why_silent((*sources, (sink.kafka, sink.name)))

    has_marks = runner.delivery.doubles_nothing
    return supervised(
        start_query, guard, about, probe, runner.finish,
        close=clients.close, check_again=check_again if has_marks else None,
    )  # fmt: skip
