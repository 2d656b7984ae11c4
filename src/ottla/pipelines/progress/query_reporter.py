"""One query in a group of its own: its offsets, the state of its run, and requests to stop it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from ottla.pipelines.progress.commits import Delivered, GroupCommitter
from ottla.pipelines.progress.events import Offsets, read_progress
from ottla.pipelines.progress.group import Group, GroupError
from ottla.pipelines.progress.offset_metadata import MAX_REASON_CHARS, Run, read_offset_metadata
from ottla.pipelines.progress.reporter import (
    BUSY_WAIT_S,
    EXIT_WAIT_S,
    Reporter,
    done_batches,
    initial_offsets,
)
from ottla.pipelines.running import QUERIES, Running
from ottla.pipelines.unknown_fields import UnknownFields, format_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

    from ottla.pipelines.progress.requests import StopRequest

log: Final = logging.getLogger("ottla.pipelines")

SETTLE_S: Final = 0.1


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
            for batch, offsets in done_batches(running, -1 if known is None else known).items():
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
        offsets = initial_offsets(running)
        return Delivered(self.name, self.query_id, None, offsets) if offsets else None


def _reason_of(running: Running | None) -> str | None:
    reason = None if running is None else running.rejected_reason
    return None if reason is None else reason[:MAX_REASON_CHARS]


def _first_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[0].strip() if lines else None
