"""What Spark reports of queries, as commits of a consumer group.

A listener hands over Spark's events. What a former run did and could not report is found in the
checkpoint.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from typing import TYPE_CHECKING, Final

from ottla.pipelines.locations import shown_location
from ottla.pipelines.progress.commits import Delivered, GroupCommitter, last_batch
from ottla.pipelines.progress.events import (
    Offsets,
    Progress,
    read_initial_offsets,
    read_offsets,
    read_progress,
)
from ottla.pipelines.progress.group import GroupError, Partition
from ottla.pipelines.rejected_offsets import RejectedOffsets, untold
from ottla.pipelines.running import QUERIES, Running
from ottla.pipelines.spark.jvm.events import wait_for_events
from ottla.pipelines.target.delta_table import DeltaTable
from ottla.pipelines.unknown_fields import UnknownFields

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

EXIT_WAIT_S: Final = 5.0
BUSY_WAIT_S: Final = 15.0
"""How much longer the end waits for commits where none has failed: the machine is busy."""
EVENTS_WAIT_S: Final = 10.0
MAX_CAUGHT_UP: Final = 100  # Spark keeps the offsets of its last 100 batches
MAX_SOURCES: Final = 100


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
            begins = initial_offsets(running) if batch == 0 else {}
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
        offsets = done_batches(running)
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


def initial_offsets(running: Running) -> Offsets:
    """Return where each partition began, from the checkpoint."""
    offsets: Offsets = {}
    indexes = [name for name in running.files.names("sources") if name.isdigit()]
    for index in sorted(indexes)[:MAX_SOURCES]:
        offsets |= read_initial_offsets(running.files.read(f"sources/{index}/0") or "")
    return offsets


def done_batches(running: Running, after: int = -1) -> dict[int, Offsets]:
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
