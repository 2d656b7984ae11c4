"""`start`: carries a plan out: creates what its query needs, and starts it.

Each batch is one commit. The delivery decides what a kill leaves: see `delivery`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.topic_watch import TopicWatch
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.failures.known import About, Known
from ottla.pipelines.kafka.brokers import why_silent
from ottla.pipelines.locations import shown_location
from ottla.pipelines.rejects.dead_letters import DeadLetters
from ottla.pipelines.rejects.left_out import LeftOutRows
from ottla.pipelines.rejects.rejects import Rejects
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.run.begin import (
    Clients,
    check_free,
    keeping,
    prepare_checkpoint,
    report,
    stream_writer,
    topic_ids_now,
)
from ottla.pipelines.run.cut_off import CutOffFirst
from ottla.pipelines.run.first_offsets import check_first, check_new
from ottla.pipelines.run.frame import Written, write_frame
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.interrupt import interruptible
from ottla.pipelines.run.known_ids import note_ids
from ottla.pipelines.run.late_rows import LateRows
from ottla.pipelines.run.local_files import local_files
from ottla.pipelines.run.log_watch import LogWatch
from ottla.pipelines.run.message_key import destination_of
from ottla.pipelines.run.plan import (
    Plan,
    SinkOf,
    check_again,
    look_up_topics,
    plan,
)
from ottla.pipelines.run.reported import reported
from ottla.pipelines.run.spark_log import route_failures
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.running import ended
from ottla.pipelines.source.source import Source, sources_of
from ottla.pipelines.spark.jvm.plan import nodes
from ottla.pipelines.spark.session_settings import ValuesAsBefore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.progress.offset_metadata import Run
    from ottla.pipelines.run.query import PipelineQuery

log: Final = logging.getLogger("ottla.pipelines")


def start_or_write(
    specification: Specification,
    shown: str,
    sink_of: SinkOf,
    failures: tuple[Known, ...] = (),
) -> StreamingQuery | Written:
    """Start the query of a streaming frame, or write a batch frame.

    `shown` names the target, which alone has these failures.

    Raises PipelineError.
    """
    about = About(target=shown, checkpoint=str(specification.checkpoint), failures=failures)
    with interruptible(), reported(about):
        if specification.frame.isStreaming:
            check_free(specification)
            return start(plan(specification, sink_of))
        return write_frame(specification, sink_of(specification))


def start(checked: Plan, run: Run | None = None) -> StreamingQuery:
    """Carry out a plan: keep the checkpoint, create the table, write the identity, run.

    `run`: the run that is already reported to the group; the query continues it.
    Raises PipelineError: another query runs on this checkpoint, or Spark refuses the query.
    """
    specification = checked.specification
    route_failures(specification.frame.sparkSession, os.environ)
    about = About(
        target=checked.sink.name,
        checkpoint=str(specification.checkpoint),
        failures=checked.sink.failures,
    )
    with reported(about):
        with keeping(checked) as kept:
            for notice in checked.notices:
                log.warning("%s", notice)
            checked.sink.make()
            prepare_checkpoint(checked)
            clients = Clients()
            runner = _runner(checked, clients, kept.check)
            query = _run(checked, runner, clients)
        kept.started(query)
        report(checked, run, runner, query)
    return query


def _runner(checked: Plan, clients: Clients, check_kept: Callable[[], None]) -> BatchRunner:
    specification, sink = checked.specification, checked.sink
    frame, sources = specification.frame, tuple(source for _, source in checked.sources)
    can_be_late = sink.capabilities.keeps_rejects and has_watermark(frame)
    return BatchRunner(
        frame.sparkSession,
        sink,
        checked.checkpoint,
        DeliveryGuarantee(specification.delivery),
        _rejects(checked, sources),
        TopicWatch(checked.topic_ids, topic_ids_now(sources, clients)),
        checked.cluster,
        checked.topic_ids,
        LateRows(sink) if can_be_late else None,
        checks_first=specification.on_rejects == "stop",
        after=checked.after,
        check_new=_of_new(checked, check_new),
        check_first=_of_new(checked, check_first),
        check_kept=check_kept,
        destination=destination_of(sink, frame, sources),
        logs=LogWatch(checked.checkpoint.files, checked.topic_ids, clients.of),
    )


def _rejects(checked: Plan, sources: tuple[Source, ...]) -> Rejects | LeftOutRows:
    """Return what becomes of the rows that are rejected."""
    specification, sink = checked.specification, checked.sink
    if not sink.capabilities.keeps_rejects:
        return LeftOutRows(sink, sources)
    name = specification.dead_letters
    return Rejects(
        specification.frame.sparkSession,
        sink,
        checked.checkpoint.files,
        sources,
        checked.topic_ids,
        specification.max_rejects,
        reads_all(specification.frame),
        None if name is None else DeadLetters(name, sources[0].kafka),
    )


def _of_new(checked: Plan, check: Callable[..., None]) -> Callable[[str], None] | None:
    """Return a check of the first batch of a query, by its id; None where nothing is known."""
    newest, topics = checked.newest, [source.name for _, source in checked.sources]
    if newest is None:
        return None
    # At-least-once may write rows twice, and is the way out where a target has forgotten too much.
    doubles_nothing = DeliveryGuarantee(checked.specification.delivery).doubles_nothing
    since = checked.since if doubles_nothing else None
    return lambda query_id: check(checked.sink, query_id, topics, newest, since)


def has_watermark(frame: DataFrame) -> bool:
    """Tell whether a frame has a watermark, and so may leave out late rows."""
    return any(node.kind == "EventTimeWatermark" for node in nodes(frame))


# Nodes of a plan that may stop reading their input: a limit, a join whose other side is empty.
_STOP_EARLY: Final = ("GlobalLimit", "LocalLimit", "Offset", "Tail", "Join")


def reads_all(frame: DataFrame) -> bool:
    """Tell whether Spark reads each batch to its end."""
    return all(node.kind not in _STOP_EARLY for node in nodes(frame))


def _run(checked: Plan, runner: BatchRunner, clients: Clients) -> PipelineQuery:
    from ottla.pipelines.run.query import supervised

    specification = checked.specification
    location = checked.checkpoint.files.location
    guard = BatchGuard(runner)
    frame, is_shared = specification.frame, checked.sink.capabilities.is_shared
    writer, name, runner.query_name = stream_writer(checked, frame, runner, guard)
    of_sources = [source.kafka.bootstrap_servers for _, source in checked.sources]
    about = About(
        query=name,
        target=checked.sink.shown,
        checkpoint=shown_location(location),
        topics=tuple(source.name for _, source in checked.sources),
        servers=",".join(dict.fromkeys((*of_sources, *checked.sink.servers))) or "the broker",
        failures=checked.sink.failures,
    )

    values = ValuesAsBefore(frame.sparkSession)
    triggers = CutOffFirst(
        specification.trigger, checked.checkpoint, lambda: look_up_topics(checked.sources)[1]
    )

    def start_query() -> StreamingQuery:
        if trigger := triggers.next():
            writer.trigger(**trigger)
        note_ids(runner.files, runner.rejects.sources)
        runner.rejects.recover(lambda: look_up_topics(checked.sources)[1])
        with local_files(runner.spark, location, *checked.sink.folders), values.again():
            return writer.start()

    def probe() -> str | None:
        topics = ((source.kafka, source.name) for _, source in checked.sources)
        return why_silent(topics) or runner.sink.why_silent()

    def close() -> None:
        clients.close()
        runner.sink.close()
        ended(runner)

    def replan() -> None:
        nonlocal frame, writer
        assert specification.rebuild is not None
        with values.again():
            again = replace(specification, frame=specification.rebuild())
            sink = checked.sink_of(again)
            sink.forget()
            for notice in sink.check():
                log.warning("%s", notice)
            sink.make()
            frame = again.frame
            runner.use(sink, tuple(source for _, source in sources_of(frame)))
            writer = stream_writer(checked, frame, runner, guard)[0]

    def constrain() -> bool:
        nonlocal writer
        if not runner.sink.has_new_constraints():
            return False
        with values.again():
            writer = stream_writer(checked, frame, runner, guard)[0]
        return True

    return supervised(
        start_query,
        guard,
        about,
        probe,
        runner.finish,
        # A topic that others write to is looked up when it is planned, and may be another one.
        replan=None if specification.rebuild is None or is_shared else replan,
        close=close,
        constrain=constrain,
        check_again=lambda: check_again(checked, runner.sink),
        check_ended=runner.watch.check_ended,
        goes_on=lambda: triggers.is_alone,
    )
