"""`report_progress`: a pipeline's place and its Delta versions, told to a consumer group.

Spark keeps a query's place in its checkpoint, where no broker sees it. A listener commits it to
a group as well, so that `ottla group describe` (and any of Kafka's tools) shows the lag, and puts
the Delta version of each batch into the commit's metadata, where the journey finds it. The
checkpoint stays the truth: nothing reads its place from the group.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import re
import weakref
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.progress.commits import Delivered, GroupCommitter
from ottla.pipelines.running import QUERIES, Running
from ottla.pipelines.sinks.delta_log import DeltaLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQueryListener

log: Final = logging.getLogger("ottla.pipelines")

_EXIT_WAIT_S: Final = 5.0
_MOST_CAUGHT_UP: Final = 100  # Spark keeps the offsets of its last 100 batches


def report_progress(
    spark: SparkSession, *, bootstrap_servers: str | Iterable[str], group: str
) -> StreamingQueryListener:
    """Commit the progress of every query of this session to a consumer group.

    Call it before the queries start. For each batch that is done the group gets the next offset
    of each partition, with metadata in JSON: `{"ottla.pipeline": 1, "query": ..., "id": ...,
    "batch": N, "delta": {"table": ..., "version": V}}`. After a restart the batches that were
    done but not yet reported are reported first. A broker that is away never stops a query.

    Two queries on one topic need a group each: filter them by a session of their own.

    Returns:
        the listener, for `spark.streams.removeListener`.

    Raises:
        PipelineError: no group's name.
    """
    require_pyspark()
    from ottla.pipelines.progress.listener import ProgressListener

    if not isinstance(group, str) or not group.strip():
        raise PipelineError("report_progress needs a group's name, such as group='flights-delta'")
    joined = (
        bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    )
    reporter = Reporter(spark, GroupCommitter(joined, group))
    listener = ProgressListener(reporter)
    spark.streams.addListener(listener)
    atexit.register(_finish, weakref.ref(reporter))
    return listener


def _finish(reference: weakref.ref[Reporter]) -> None:
    """At the end of the process: let Spark deliver its last events, then commit them."""
    from py4j.protocol import Py4JError

    reporter = reference()
    if reporter is None:
        return
    # Spark may be stopped already; then it has delivered its events while it stopped.
    with contextlib.suppress(Py4JError, AttributeError, OSError):
        bus = reporter.spark._jsc.sc().listenerBus()
        bus.waitUntilEmpty(int(_EXIT_WAIT_S * 1_000))
    reporter.committer.drain(_EXIT_WAIT_S)
    reporter.committer.close()


class Reporter:
    """Turns Spark's progress events into commits."""

    def __init__(self, spark: SparkSession, committer: GroupCommitter) -> None:
        self.spark = spark
        self.committer = committer
        self._logs: dict[str, DeltaLog] = {}
        self._readers: dict[str, str] = {}  # topic -> the query that reads it

    def started(self, query_id: str, name: str | None) -> None:
        """Handle a query's start: report what a former run did and could not report any more."""
        delivery = QUERIES.get(query_id)
        if delivery is None:
            return
        for batch, offsets in self._missed(delivery, query_id):
            self._put(name or query_id, query_id, batch, offsets, delivery, None)

    def progressed(self, text: str) -> None:
        """Handle one progress, as Spark's JSON. Idle ones change nothing and are passed over."""
        progress = json.loads(text)
        offsets = offsets_of(progress["sources"])
        # Spark also sends progress when it only looked for data; a batch ran if it was added.
        if not offsets or "addBatch" not in progress["durationMs"]:
            return
        query_id, batch = progress["id"], int(progress["batchId"])
        query = progress.get("name") or query_id
        self._warn_of_two_readers(query, offsets)
        delivery = QUERIES.get(query_id)
        self._put(query, query_id, batch, offsets, delivery, progress["sink"]["description"])

    def _put(
        self,
        query: str,
        query_id: str,
        batch: int,
        offsets: dict[str, dict[int, int]],
        delivery: Running | None,
        sink: str | None,
    ) -> None:
        if delivery is not None:
            table: str | None = delivery.table
            version = delivery.version_of(batch)
        else:
            table, version = self._delta_sink(sink or "", query_id, batch)
        self.committer.put(Delivered(query, query_id, batch, offsets, table, version))

    def _delta_sink(self, sink: str, query_id: str, batch: int) -> tuple[str | None, int | None]:
        """Find the version for a query that uses Delta's own sink, not to_delta."""
        match = re.fullmatch(r"DeltaSink\[(.+)\]", sink)
        if match is None:
            return None, None
        location = match.group(1)
        if location not in self._logs:
            self._logs[location] = DeltaLog(self.spark, location)
        return location.removeprefix("file:"), self._logs[location].find(query_id, batch)

    def _missed(
        self, delivery: Running, query_id: str
    ) -> list[tuple[int, dict[str, dict[int, int]]]]:
        """Return the batches that are done but that the group was not told of.

        The process may have been killed between the end of a batch and its report.
        """
        from confluent_kafka import KafkaException

        done = [int(name) for name in delivery.checkpoint.names("commits") if name.isdigit()]
        if not done:
            return []
        offsets = {
            batch: _read_offsets(delivery.checkpoint.read(f"offsets/{batch}") or "")
            for batch in sorted(done)[-_MOST_CAUGHT_UP:]
        }
        topic, partitions = next(iter(offsets[max(done)].items()), ("", {}))
        try:
            last = self.committer.last_batch(query_id, topic, list(partitions)) if topic else None
        except KafkaException as error:
            log.warning("The group's last commit cannot be read: %s", error.args[0].str())
            return []
        return [
            (batch, places)
            for batch, places in offsets.items()
            if places and (last is None or batch > last)
        ]

    def _warn_of_two_readers(self, query: str, offsets: dict[str, dict[int, int]]) -> None:
        for topic in offsets:
            other = self._readers.setdefault(topic, query)
            if other != query:
                self._readers[topic] = query
                log.warning(
                    "The queries %s and %s both report topic %s in one group: its lag is the "
                    "last one's",
                    other,
                    query,
                    topic,
                )


def offsets_of(sources: list[dict[str, Any]]) -> dict[str, dict[int, int]]:
    """Return the next offset of each partition from the Kafka sources of a progress."""
    found: dict[str, dict[int, int]] = {}
    for source in sources:
        end = source.get("endOffset")
        if str(source.get("description", "")).startswith("KafkaV2[") and isinstance(end, dict):
            found |= _by_number(end)
    return found


def _by_number(offsets: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in offsets.items()
    }


def _read_offsets(text: str) -> dict[str, dict[int, int]]:
    """Read a file of the checkpoint's `offsets`: version, settings, then a line for each source."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines()[2:]:
        offsets = json.loads(line) if line.startswith("{") else {}
        if offsets and all(isinstance(value, dict) for value in offsets.values()):
            found |= _by_number(offsets)
    return found
