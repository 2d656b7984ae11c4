"""What the start of a query needs, whatever it writes to: the checkpoint, its name, its group."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.identity import FILE, Identity
from ottla.pipelines.checkpoint.lease import Lease
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers, look_up
from ottla.pipelines.progress.report import report_query
from ottla.pipelines.run.plan import Plan
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.running import QUERIES
from ottla.pipelines.source.source import Source
from ottla.pipelines.spark.jvm.callbacks import check_callbacks
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.spark.jvm.initial_offsets import write_initial_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.kafka.settings import KafkaSettings
    from ottla.pipelines.progress.state import Run
    from ottla.pipelines.run.batch import BatchRunner
    from ottla.pipelines.run.query import PipelineQuery

log: Final = logging.getLogger("ottla.pipelines")


class _Kept:
    """For whom a checkpoint is kept: a start, and then its query."""

    def __init__(self) -> None:
        self._query: PipelineQuery | None = None
        self._reason: str | None = None

    def is_active(self) -> bool:
        return self._query is None or bool(self._query.isActive)

    def lose(self, reason: str) -> None:
        self._reason = reason
        if self._query is not None:
            self._query.fail(reason)

    def started(self, query: PipelineQuery) -> None:
        self._query = query
        if self._reason is not None:
            query.fail(self._reason)


def begin(
    checked: Plan,
    run: Run | None,
    start: Callable[[Callable[[], None]], tuple[BatchRunner, PipelineQuery]],
) -> StreamingQuery:
    """Start a query while nothing else uses its checkpoint, and report it to its group.

    `start` prepares the checkpoint and starts the query; it gets what its first batch checks: that
    the checkpoint is still this run's. Raises PipelineError.
    """
    specification, checkpoint = checked.specification, checked.checkpoint
    spark = specification.frame.sparkSession
    # Spark would stop the first query silently.
    if checkpoint.query_id() in [query.id for query in spark.streams.active]:
        raise PipelineError(
            f"A query of this session runs on the checkpoint {specification.checkpoint} already. "
            "Stop that query first, or use another checkpoint"
        )
    lease = Lease(checkpoint.files)
    lease.acquire()
    kept = _Kept()
    lease.keep(kept.is_active, kept.lose)  # a slow start keeps it, too
    try:
        if checkpoint.position() != checked.position:
            raise PipelineError(
                f"Another run has written to the checkpoint {specification.checkpoint} while this "
                "start checked it. Start again"
            )
        for notice in checked.notices:
            log.warning("%s", notice)
        runner, query = start(lease.check_kept)
    except BaseException:
        lease.release()
        raise
    kept.started(query)
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


def check_free(specification: Specification) -> None:
    """Raise PipelineError while another run of this host has the checkpoint."""
    files = Files(specification.frame.sparkSession, os.fspath(specification.checkpoint))
    Lease(files).check_here()


def archive_old_state(checked: Plan, identity: Identity) -> None:
    """Move the state of a former query away, and write the first offsets of a new one.

    A move is noted before it begins. The caller removes the note when all is in place.
    """
    checkpoint = checked.checkpoint
    if checked.replacing is not None:
        checkpoint.files.write(FILE, identity.text())
        checkpoint.replace(checked.replacing.number)
    if checked.starting is not None:
        checkpoint.files.delete("sources")
        spark = checked.specification.frame.sparkSession
        for number, source in checked.sources:
            first = {source.name: checked.starting[source.name]}
            write_initial_offsets(spark, checkpoint.files.location, number, first)


class Clients:
    """The clients of a running query, by cluster: the same ones until the query has ended.

    A client has threads, pipes and connections of its own.
    """

    def __init__(self) -> None:
        self._brokers: dict[KafkaSettings, Brokers] = {}

    def of(self, kafka: KafkaSettings) -> Brokers:
        """Return the client of a cluster."""
        if kafka not in self._brokers:
            self._brokers[kafka] = Brokers(kafka)
        return self._brokers[kafka]

    def close(self) -> None:
        """Let the clients go, which closes them."""
        self._brokers.clear()


def topic_ids_now(sources: Iterable[Source], clients: Clients) -> Callable[[], dict[str, str]]:
    """Return a question for the ids of the topics, to clients that stay."""
    asked = tuple(sources)

    def ask() -> dict[str, str]:
        ids: dict[str, str] = {}
        for source in asked:
            ids |= clients.of(source.kafka).topic_ids([source.name])
        return ids

    return ask


def stream_writer(
    checked: Plan, frame: DataFrame, write: Callable[..., None], target: str, runner: BatchRunner
) -> tuple[Any, str, bool]:
    """Return Spark's writer, the query's name, and whether Spark knows the query by that name:
    not where another one of the session has it.

    The name is that of the specification or else of the target, or that of the group where another
    query of the session has it. Raises PipelineError.
    """
    location = checked.checkpoint.files.location
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", location)
    check_callbacks()
    name = checked.specification.name or re.sub(r"\W+", "_", target)
    taken = {query.name for query in frame.sparkSession.streams.active}
    if name in taken and checked.specification.group is not None:
        name = re.sub(r"\W+", "_", checked.specification.group)
    is_named = name not in taken
    if is_named:
        writer = writer.queryName(name)
    if checked.specification.trigger:
        writer = writer.trigger(**checked.specification.trigger)
    if query_id := runner.query_id():
        # A former run's checkpoint: its listeners ask for it while the query starts.
        QUERIES[query_id] = runner
    return writer, name, is_named


def why_silent(topics: Iterable[tuple[KafkaSettings, str]]) -> str | None:
    """Return why a topic cannot be read or written now, None when all can."""
    try:
        for kafka, name in topics:
            look_up(kafka, [name])
    except PipelineError as error:
        return str(error)
    return None
