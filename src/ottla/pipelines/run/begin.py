"""What the start of a query needs, whatever it writes to: the checkpoint, its name, its group."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.identity import IDENTITY_DOCUMENT
from ottla.pipelines.checkpoint.lease import Lease
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers
from ottla.pipelines.progress.report import report_query
from ottla.pipelines.rejects.decided import decision_of
from ottla.pipelines.rejects.pending import write_pending
from ottla.pipelines.run.plan import Plan
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.running import ended, started
from ottla.pipelines.source.source import Source
from ottla.pipelines.spark.jvm.callbacks import check_callbacks
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.spark.jvm.initial_offsets import write_initial_offsets
from ottla.pipelines.target.expectations import expecting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.kafka.settings import KafkaSettings
    from ottla.pipelines.progress.offset_metadata import Run
    from ottla.pipelines.run.batch import BatchRunner
    from ottla.pipelines.run.query import PipelineQuery

log: Final = logging.getLogger("ottla.pipelines")


class Kept:
    """For whom a checkpoint is kept: a start, and then its query.

    `check` raises PipelineError where another run has the checkpoint by now.
    """

    def __init__(self, lease: Lease) -> None:
        self.check = lease.check_kept
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


@contextlib.contextmanager
def keeping(checked: Plan) -> Iterator[Kept]:
    """Keep the checkpoint of a plan for its start, and for the query that this starts.

    Raises PipelineError where another query has the checkpoint, or has used it since the plan.
    """
    specification, checkpoint = checked.specification, checked.checkpoint
    # Spark would stop the first query silently.
    active = [query.id for query in specification.frame.sparkSession.streams.active]
    if checkpoint.query_id() in active:
        raise PipelineError(
            f"A query of this session runs on the checkpoint {specification.checkpoint} already. "
            "Stop that query first, or use another checkpoint"
        )
    lease = Lease(checkpoint.files)
    lease.acquire()
    kept = Kept(lease)
    lease.keep(kept.is_active, kept.lose)  # a slow start keeps it, too
    try:
        if checkpoint.position() != checked.position:
            raise PipelineError(
                f"Another run has written to the checkpoint {specification.checkpoint} while this "
                "start checked it. Start again"
            )
        yield kept
    except BaseException:
        lease.release()
        raise


def report(checked: Plan, run: Run | None, runner: BatchRunner, query: PipelineQuery) -> None:
    """Let others of this process and the plan's group know of the query that has started."""
    specification = checked.specification
    started(query.id, runner)
    if not query.isActive:
        ended(runner)  # it ended before it was known
    if specification.group is not None:
        report_query(
            specification.frame.sparkSession,
            query,
            group=specification.group,
            settings=checked.sources[0][1].kafka.for_librdkafka(),
            ends_by_itself=specification.ends_by_itself,
            run=run,
        )


def check_free(specification: Specification) -> None:
    """Raise PipelineError while another run of this host has the checkpoint."""
    files = Files(specification.frame.sparkSession, os.fspath(specification.checkpoint))
    Lease(files).check_here()


def prepare_checkpoint(checked: Plan) -> None:
    """Move the state of a former query away, write the first offsets of a new one, and what the
    checkpoint belongs to.

    A move is noted before it begins, and the note removed when all is in place.
    """
    identity, files = checked.identity, checked.checkpoint.files
    if checked.replacing is not None:
        IDENTITY_DOCUMENT.write(files, identity)
        checked.checkpoint.replace(checked.replacing.number)
    if checked.starting is not None:
        files.delete("sources")
        for number, source in checked.sources:
            first = {source.name: checked.starting[source.name]}
            spark = checked.specification.frame.sparkSession
            write_initial_offsets(spark, files.location, number, first)
    if checked.due:
        write_pending(files, list(checked.due))
    IDENTITY_DOCUMENT.write(files, replace(identity, replacing=None))


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
    checked: Plan, frame: DataFrame, runner: BatchRunner, write: Callable[..., None]
) -> tuple[Any, str, str]:
    """Return Spark's writer for a frame, the query's name, and the name by which Spark knows it:
    empty where another one of the session has it. Each start gives the writer its trigger.

    The name is that of the specification or else of the target, or that of the group where another
    query of the session has it. Raises PipelineError.
    """
    specification, sink = checked.specification, runner.sink
    location = checked.checkpoint.files.location
    rows = expecting(sink.constrained(frame), specification.expectations)
    if sink.capabilities.keeps_rejects:
        runner.decisions.now = decision_of(frame, rows, runner.rejects.sources)
    writer = rows.writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", location)
    if specification.mode != "append":
        writer = writer.outputMode(specification.mode)
    check_callbacks()
    name = specification.name or re.sub(r"\W+", "_", sink.short_name)
    taken = {query.name for query in frame.sparkSession.streams.active}
    if name in taken and specification.group is not None:
        name = re.sub(r"\W+", "_", specification.group)
    is_named = name not in taken
    if is_named:
        writer = writer.queryName(name)
    if query_id := runner.query_id():
        # A former run's checkpoint: its listeners ask for it while the query starts.
        started(query_id, runner)
    return writer, name, name if is_named else ""
