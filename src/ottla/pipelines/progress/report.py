"""Reporting queries to consumer groups: each query to its own, or a whole session to one.

Spark keeps a query's offsets in its checkpoint, where no broker sees it. A listener commits them to
a group as well, so that `ottla group describe` (and any of Kafka's tools) shows the lag, and puts
the Delta version of each batch into the commit's metadata, where the journey finds it. The
checkpoint stays authoritative: nothing reads its offsets from the group.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import re
import threading
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.locations import shown_location
from ottla.pipelines.progress.commits import Delivered, GroupCommitter, last_batch
from ottla.pipelines.progress.events import (
    Offsets,
    Progress,
    read_initial_offsets,
    read_offsets,
    read_progress,
)
from ottla.pipelines.progress.group import Group, GroupError, Partition
from ottla.pipelines.progress.offset_metadata import MAX_REASON_CHARS, Run, read_offset_metadata
from ottla.pipelines.progress.starting_run import new_run
from ottla.pipelines.rejected_offsets import RejectedOffsets, untold
from ottla.pipelines.running import QUERIES, Running
from ottla.pipelines.spark.jvm.events import wait_for_events
from ottla.pipelines.spark.jvm.required import require_jvm
from ottla.pipelines.target.delta_table import DeltaTable
from ottla.pipelines.unknown_fields import UnknownFields, format_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

    from ottla.pipelines.progress.requests import StopRequest

log: Final = logging.getLogger("ottla.pipelines")

EXIT_WAIT_S: Final = 5.0
BUSY_WAIT_S: Final = 15.0
"""How much longer the end waits for commits where none has failed: the machine is busy."""
EVENTS_WAIT_S: Final = 10.0
MAX_CAUGHT_UP: Final = 100  # Spark keeps the offsets of its last 100 batches
MAX_SOURCES: Final = 100
SETTLE_S: Final = 0.1

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


class Reporter:
    """Turns Spark's progress events into commits, for all queries of a session."""

    def __init__(self, spark: SparkSession, committer: GroupCommitter) -> None:
        self.spark = spark
        self.committer = committer
        self.lock = threading.RLock()
        self._logs: dict[str, DeltaTable] = {}
        self._readers: dict[str, str] = {}  # topic -> the query that reads it

    def started(self, query_id: str, name: str | None) -> None:
        """Handle a query's start: report what a former run did and could not report."""
        running = QUERIES.get(query_id)
        if running is None:
            return
        with self.lock:
            for batch, offsets in self._missed(running, query_id):
                self._put(name or query_id, query_id, batch, offsets, running, None)

    def progressed(self, text: str) -> None:
        """Handle one progress, as Spark's JSON."""
        progress = read_progress(text)
        if not progress.offsets or not progress.has_batch:
            return
        with self.lock:
            self._warn_of_two_readers(progress.query, progress.offsets)
            self._report(progress)

    def idle(self, query_id: str) -> None:
        """Handle that a query looked for data and found none."""

    def terminated(self, query_id: str, exception: str | None) -> None:
        """Handle a query's end."""

    def finish(self) -> None:
        """Commit what waits, for a limited time, and end."""
        self._wait_for_events()
        self._close()

    def _close(self) -> None:
        committer = self.committer
        is_done = committer.drain(EXIT_WAIT_S)
        if not is_done and not committer.is_failing:
            is_done = committer.drain(BUSY_WAIT_S)
        if not is_done:
            log.warning(
                "The last progress of group %s is not committed to %s; the next start does it",
                committer.group.name,
                committer.group.bootstrap_servers,
            )
        committer.close()

    def _wait_for_events(self) -> None:
        """Let Spark deliver its last events: a query has ended before its last batch is reported.

        A time limit that passes loses nothing: the next start catches up.
        """
        from py4j.protocol import Py4JError

        # Spark may be stopped already; then it has delivered its events while it stopped.
        with contextlib.suppress(Py4JError, AttributeError, OSError):
            wait_for_events(self.spark, int(EVENTS_WAIT_S * 1_000))

    def _report(self, progress: Progress) -> None:
        running = QUERIES.get(progress.query_id)
        self._put(
            progress.query,
            progress.query_id,
            progress.batch,
            progress.offsets,
            running,
            progress.sink,
        )

    def _put(
        self,
        query: str,
        query_id: str,
        batch: int,
        offsets: Offsets,
        running: Running | None,
        sink: str | None,
    ) -> None:
        to, rejected, unknown = None, dict[Partition, RejectedOffsets](), dict[str, UnknownFields]()
        reads_committed: frozenset[str] = frozenset()
        begins: Offsets = {}
        if running is not None:
            # Nobody else knows where another checkpoint began. Each later batch begins where the
            # one before it ended.
            begins = _initial(running) if batch == 0 else {}
            table: str | None = running.table
            version, to = running.version_of(batch), running.destination
            rejected = _rejected(running, batch, offsets)
            unknown, reads_committed = dict(running.unknown_fields), running.reads_committed
        else:
            table, version = self._delta_sink(sink or "", query_id, batch)
        self._put_delivered(
            Delivered(
                *(query, query_id, batch, offsets, table, version, to, rejected, unknown),
                reads_committed=reads_committed,
                begins=begins,
            )
        )

    def _put_delivered(self, delivered: Delivered) -> None:
        self.committer.put(delivered)

    def _delta_sink(self, sink: str, query_id: str, batch: int) -> tuple[str | None, int | None]:
        """Find the version for a query that uses Delta's own sink, not to_delta."""
        match = re.fullmatch(r"DeltaSink\[(.+)\]", sink)
        if match is None:
            return None, None
        location = match.group(1)
        if location not in self._logs:
            self._logs[location] = DeltaTable(self.spark, location)
        return shown_location(location), self._logs[location].find(query_id, batch)

    def _missed(self, running: Running, query_id: str) -> list[tuple[int, Offsets]]:
        """Return the batches that are done but not in the group.

        The process may have been killed between the end of a batch and its report.
        """
        offsets = _done(running)
        if not offsets:
            return []
        partitions = [
            (topic, partition)
            for topic, ends in offsets[max(offsets)].items()
            for partition in ends
        ]
        try:
            last = last_batch(self.committer.group, query_id, partitions) if partitions else None
        except GroupError as error:
            log.warning("The group's last commit cannot be read: %s", error)
            return []
        return [
            (batch, ends)
            for batch, ends in offsets.items()
            if ends and (last is None or batch > last)
        ]

    def _warn_of_two_readers(self, query: str, offsets: Offsets) -> None:
        for topic in offsets:
            other = self._readers.setdefault(topic, query)
            if other != query:
                self._readers[topic] = query
                log.warning(
                    "The queries %s and %s both report topic %s in one group, which then has the "
                    "lag of the last one",
                    other,
                    query,
                    topic,
                )


class QueryReporter(Reporter):
    """Reports one query, with its run's state, and passes on a request to stop.

    `latest` is the last batch reported, or where the query starts; `run` the state of the run.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: StreamingQuery,
        group: Group,
        run: Run,
        ends_by_itself: bool,
    ) -> None:
        self.query_id = str(query.id)
        self.name = query.name or self.query_id
        self.listener: StreamingQueryListener | None = None
        self.latest: Delivered | None = None
        self._query = query
        self._ends_by_itself = ends_by_itself
        self._starts = 0
        self._has_closed = False
        self._is_over = threading.Event()
        self._rows = self._rejected = self._unknown = 0
        super().__init__(spark, GroupCommitter(group, run=run, on_stop=self._stop_for))

    @property
    def run(self) -> Run:
        """The state of the run as it is or will be in the group."""
        run = self.committer.run
        assert run is not None
        return run

    def catch_up(self) -> None:
        """Report what a former run did and could not report, or where this one begins."""
        self.started(self.query_id, self.name)
        self._put_offsets()

    def stop(self, by: str) -> None:
        """Stop the query; `by` says who wanted that."""
        self.committer.update(by=by)
        self._query.stop()

    def started(self, query_id: str, name: str | None) -> None:
        if query_id == self.query_id:
            self._starts += 1
            self.committer.update(state="running")
            super().started(query_id, self.name)

    def progressed(self, text: str) -> None:
        progress = read_progress(text)
        if progress.query_id != self.query_id:
            return
        with self.lock:
            if self._has_closed:
                return  # its end is committed: the batch is in there, from the checkpoint
            if not progress.has_batch or not progress.offsets:
                self._put_offsets()
                return
            self._rows += progress.rows
            self._rejected += progress.rejected
            self._unknown += progress.unknown
            running = QUERIES.get(self.query_id)
            rate = progress.rows_per_s
            self.committer.update(
                state="running",
                failure=None,
                batch_at_ms=progress.began_ms + progress.took_ms,
                batch_ms=progress.took_ms,
                rows=self._rows,
                rows_per_s=None if rate is None else round(rate, 1),
                rejected=max(self._rejected, running.rejected_rows if running else 0),
                rejected_reason=_reason_of(running),
                unknown=self._unknown,
                dropped=running.dropped if running else None,
                truncated=running.truncated if running else None,
                unknown_fields=format_names(running.unknown_fields.values()) if running else None,
            )
            self._report(progress)

    def idle(self, query_id: str) -> None:
        if query_id == self.query_id:
            with self.lock:
                self._put_offsets()

    def terminated(self, query_id: str, exception: str | None) -> None:
        if query_id == self.query_id:
            with self.lock:
                self._put_offsets()
            threading.Thread(target=self._settle, args=(exception,), daemon=True).start()

    def _close(self) -> None:
        """Commit the run's end, for a limited time, and close what the reporter has open."""
        with self.lock:
            is_first, self._has_closed = not self._has_closed, True
            if is_first:
                self._put_unreported()
                if not self.run.has_ended:
                    self._end(None)
        if not is_first:
            # The thread that saw the query's end commits it.
            self._is_over.wait(EXIT_WAIT_S + BUSY_WAIT_S)
            return
        try:
            super()._close()
            self._stop_listening()
        finally:
            self._is_over.set()

    def _stop_listening(self) -> None:
        from py4j.protocol import Py4JError

        listener, self.listener = self.listener, None
        if listener is None:
            return
        # Spark may be stopped already, and its listeners with it.
        with contextlib.suppress(Py4JError, AttributeError, OSError):
            self.spark.streams.removeListener(listener)

    def _put_unreported(self) -> None:
        """Commit the batches that are done and that Spark has not reported in time.

        On a busy machine its events come later than this waits for them. The query may finish for
        good, so no next start would catch up.
        """
        from py4j.protocol import Py4JError

        running = QUERIES.get(self.query_id)
        if running is None:
            return
        known = self.latest.batch if self.latest else None
        try:
            for batch, offsets in _done(running, -1 if known is None else known).items():
                if offsets:
                    self._put(self.name, self.query_id, batch, offsets, running, None)
        except (Py4JError, OSError, AttributeError) as error:
            # Spark's process may be gone.
            log.debug("The checkpoint of %s cannot be read: %s", self.name, error)

    def _settle(self, exception: str | None) -> None:
        """After the end of one of Spark's runs: wait until the query is started again or over."""
        starts = self._starts
        while self._query.isActive and starts == self._starts:
            failure = _first_line(exception)
            if failure and self.run.state != "retrying":
                self.committer.update(state="retrying", failure=failure)
            time.sleep(SETTLE_S)
        if starts == self._starts:
            if not self.run.has_ended:
                self._end(exception)
            self.finish()

    def _end(self, exception: str | None) -> None:
        from py4j.protocol import Py4JError

        try:
            if not self._query.isActive:
                # It knows best: a query that was stopped inside a batch has not failed.
                reason = self._query.exception()
                exception = None if reason is None else str(reason)
        except (Py4JError, OSError, AttributeError):
            pass  # Spark's process may be gone
        failure = _first_line(exception)
        ended = "finished" if self._ends_by_itself and self.run.by is None else "stopped"
        self.committer.update(state="failed" if failure else ended, failure=failure)

    def _stop_for(self, request: StopRequest) -> None:
        self.stop(request.by)

    def _put_offsets(self) -> None:
        """Commit where the query stands before its first batch of this run is done.

        What the group has of this query is kept as it is; else the offsets are those where it
        starts.
        """
        if self.latest is not None:
            return
        found = self._offsets_in_group() or self._offsets_at_start()
        if found is not None:
            self._put_delivered(found)

    def _put_delivered(self, delivered: Delivered) -> None:
        self.latest = delivered
        super()._put_delivered(delivered)

    def _offsets_in_group(self) -> Delivered | None:
        try:
            found = self.committer.group.read_all()
        except GroupError as error:
            log.debug("The group %s cannot be read: %s", self.committer.group.name, error)
            return None
        offsets: Offsets = {}
        unknown: dict[str, UnknownFields] = {}
        committed: set[str] = set()
        latest = None
        for (topic, partition), commit in found.items():
            metadata = read_offset_metadata(commit.metadata)
            if metadata is None or metadata.query_id != self.query_id:
                continue
            offsets.setdefault(topic, {})[partition] = commit.offset
            if metadata.unknown is not None:
                unknown[topic] = metadata.unknown
            if metadata.reads_committed:
                committed.add(topic)
            if latest is None or (metadata.batch or -1) > (latest.batch or -1):
                latest = metadata
        if latest is None:
            return None
        return Delivered(
            self.name,
            self.query_id,
            latest.batch,
            offsets,
            latest.table,
            latest.version,
            latest.to,
            unknown=unknown,
            reads_committed=frozenset(committed),
        )

    def _offsets_at_start(self) -> Delivered | None:
        running = QUERIES.get(self.query_id)
        if running is None:
            return None
        offsets = _initial(running)
        return Delivered(self.name, self.query_id, None, offsets) if offsets else None


def _initial(running: Running) -> Offsets:
    """Return where each partition began, from the checkpoint."""
    offsets: Offsets = {}
    indexes = [name for name in running.files.names("sources") if name.isdigit()]
    for index in sorted(indexes)[:MAX_SOURCES]:
        offsets |= read_initial_offsets(running.files.read(f"sources/{index}/0") or "")
    return offsets


def _done(running: Running, after: int = -1) -> dict[int, Offsets]:
    """Return the last batches that are done, with their next offsets, from the checkpoint."""
    done = [int(name) for name in running.files.names("commits") if name.isdigit()]
    return {
        batch: read_offsets(running.files.read(f"offsets/{batch}") or "")
        for batch in sorted(done)[-MAX_CAUGHT_UP:]
        if batch > after
    }


def _rejected(running: Running, batch: int, ends: Offsets) -> dict[Partition, RejectedOffsets]:
    """Return what a batch that ends at `ends` rejected, as far as it is known."""
    told = running.rejected_in(batch)
    if told is not None:
        return dict(told)
    return untold(read_offsets(running.files.read(f"offsets/{batch - 1}") or ""), ends)


def _reason_of(running: Running | None) -> str | None:
    reason = None if running is None else running.rejected_reason
    return None if reason is None else reason[:MAX_REASON_CHARS]


def _first_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[0].strip() if lines else None
