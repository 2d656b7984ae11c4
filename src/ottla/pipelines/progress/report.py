"""Reporting queries to consumer groups: each query to its own, or a whole session to one.

Spark keeps a query's offsets in its checkpoint, where no broker sees it. A listener commits them to
a group as well, so that `ottla group describe` (and any of Kafka's tools) shows the lag, and puts
the Delta version of each batch into the commit's metadata, where the journey finds it. The
checkpoint stays authoritative: nothing reads its offsets from the group.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.progress.commits import GroupCommitter
from ottla.pipelines.progress.group import Group
from ottla.pipelines.progress.offset_metadata import Run
from ottla.pipelines.progress.query_reporter import QueryReporter
from ottla.pipelines.progress.reporter import Reporter
from ottla.pipelines.progress.starting_run import new_run
from ottla.pipelines.spark.jvm.required import require_jvm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

# The queries that this process reports to a group of their own, by query id.
REPORTERS: Final[dict[str, QueryReporter]] = {}


def report_progress(
    spark: SparkSession,
    *,
    bootstrap_servers: str | Iterable[str],
    group: str,
    kafka: Mapping[str, str] | None = None,
) -> StreamingQueryListener:
    """Commit the progress of every query of this session to one consumer group.

    Call it before the queries start. For each batch that is done the group gets the next offset
    of each partition, with metadata in JSON: `{"ottla.pipeline": 1, "query": ..., "id": ...,
    "batch": N, "delta": {"table": ..., "version": V}}`. After a restart it first reports the
    batches that were done but not reported. A broker that does not answer never stops a query.

    Two queries on one topic need a group each: give `to_delta` its `group` instead.

    Args:
        kafka: librdkafka's settings for a secured broker.

    Returns:
        the listener, for `spark.streams.removeListener`.

    Raises:
        PipelineError: the group has no name.
    """
    require_pyspark()
    require_jvm(spark)
    from ottla.pipelines.progress.progress_listener import ProgressListener

    joined = (
        bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    )
    settings = {**(kafka or {}), "bootstrap.servers": joined}
    name = checked_group(group, "report_progress")
    reporter = Reporter(spark, GroupCommitter(Group(settings, name)))
    listener = ProgressListener(reporter)
    spark.streams.addListener(listener)
    atexit.register(_finish, weakref.ref(reporter))
    return listener


def report_query(
    spark: SparkSession,
    query: StreamingQuery,
    *,
    group: str,
    settings: Mapping[str, str],
    ends_by_itself: bool = False,
    run: Run | None = None,
) -> QueryReporter:
    """Keep one query's offsets and its run's state in a group of its own, until it has ended.

    Call it when the query has started. A request to stop stops the query.

    Args:
        query: Spark's query, or one that restarts it: `isActive` until it has ended for good,
            `exception()` is then the reason.
        settings: librdkafka's, with `bootstrap.servers`.
        ends_by_itself: the query takes what there is and ends.
        run: the run that the query belongs to; by default it begins with the query.

    Raises PipelineError: the group has no name.
    """
    from ottla.pipelines.progress.progress_listener import ProgressListener

    name = checked_group(group, "to_delta")
    if (former := REPORTERS.pop(str(query.id), None)) is not None:
        # A former run of this process on the same checkpoint: both would report each batch.
        former.finish()
    reporter = QueryReporter(
        spark, query, Group(settings, name), run or new_run("running"), ends_by_itself
    )
    reporter.listener = ProgressListener(reporter)
    with reporter.lock:
        # Events wait for the lock, so that older batches are committed before them.
        spark.streams.addListener(reporter.listener)
        reporter.catch_up()
    REPORTERS[str(query.id)] = reporter
    atexit.register(_finish, weakref.ref(reporter))
    return reporter


def checked_group(group: Any, asker: str) -> str:
    """Return the group's name. Raises PipelineError where it is none."""
    if not isinstance(group, str) or not group.strip():
        raise PipelineError(f"{asker} needs a group's name, such as group='flights-delta'")
    return group


def _finish(reference: weakref.ref[Reporter]) -> None:
    """At the end of the process: commit what Spark still reports."""
    reporter = reference()
    if reporter is not None:
        reporter.finish()
