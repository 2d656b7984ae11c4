"""`TopicBatchRunner`: writes each batch of a running query to a topic, as its delivery promises."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.next_batch import Planned, Refuse, decide, digest
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.destination import Destination
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.rejects.first_batch import check_first_batch
from ottla.pipelines.rejects.rejects import find_part
from ottla.pipelines.rejects.told import somewhere
from ottla.pipelines.run.state import keep_state
from ottla.pipelines.run.unknown_fields import UnknownFieldsWatch
from ottla.pipelines.sinks.port import Batch
from ottla.pipelines.source.source import REJECTED, Source, read_committed_of
from ottla.pipelines.spark.jvm.execution import Execution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.checkpoint.checkpoint import Checkpoint
    from ottla.pipelines.checkpoint.topic_watch import TopicWatch
    from ottla.pipelines.kafka.brokers import Brokers
    from ottla.pipelines.rejected_offsets import Told
    from ottla.pipelines.sinks.topic import TopicSink
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.unknown_fields import Unknown

MAX_KEPT: Final = 1_000

log: Final = logging.getLogger("ottla.pipelines")


@dataclass
class TopicBatchRunner:
    """Called by Spark for each batch, and again for a batch that was cut off.

    `brokers` gives the client of the cluster that is written to. `check_kept` checks, before the
    first batch of a run, that the checkpoint is still the run's.
    """

    spark: SparkSession
    sink: TopicSink
    place: Checkpoint
    delivery: DeliveryGuarantee
    sources: tuple[Source, ...]
    watches: tuple[TopicWatch, ...]
    checks_first: bool = False
    brokers: Callable[[], Brokers] | None = None
    check_kept: Callable[[], None] | None = None
    told: dict[int, Told] = field(default_factory=dict)
    unknown: UnknownFieldsWatch = field(default_factory=UnknownFieldsWatch)
    _ends: dict[int, str] = field(default_factory=dict)
    _query_id: str = ""
    _has_warned: bool = False

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write one batch."""
        if self.check_kept is not None:
            self.check_kept()
            self.check_kept = None
        for watch in self.watches:
            watch.check()
        query_id = self.query_id()
        execution = Execution(self.spark, query_id)
        if self.checks_first and number == 0:
            check_first_batch(self.spark, self.sources, execution)
        if self.delivery is DeliveryGuarantee.AT_MOST_ONCE:
            if number <= self.place.noted(query_id):
                log.warning(
                    "Batch %d was begun by a run that was cut off; at-most-once does not write it "
                    "again: its rows up to %s may be missing in %s",
                    number,
                    execution.ends(),
                    self.sink.shown,
                )
                self._check_held(query_id, number, digest(execution.ends()))
                keep_state(frame, execution.plan())
                self._ends = {number: digest(execution.ends())}
                return
            self.place.note(query_id, number)
        once = self.delivery.doubles_nothing
        ends = digest(execution.ends())
        begins = self._ends.get(number - 1)
        if once:
            # A task compares its own mark. If it refuses, another one may have written its rows.
            self._check_held(query_id, number, ends)
        self.sink.write(frame, Batch(query_id, number, ends, once, begins=begins))
        self._ends = {number: ends}
        self.unknown.look(self.sources, execution)
        self._tell(execution, number)
        self._warn_of_rejected(execution)

    def _check_held(self, query_id: str, number: int, ends: str) -> None:
        """Check that the topic has no other batch of this number, from a copy of the checkpoint.

        Raises PipelineError.
        """
        place = self.place.files.location.removeprefix("file:")
        planned = Planned(place, number, self._ends.get(number - 1), ends)
        client = None if self.brokers is None else self.brokers()
        answer = decide(planned, self.sink.held(query_id, client))
        if isinstance(answer, Refuse):
            raise PipelineError(answer.sentence)

    def _tell(self, execution: Execution, number: int) -> None:
        """Tell where the records lie that do not parse; they are not read again."""
        counted = execution.counted()
        found = (
            find_part(
                source,
                "",
                execution.range_of(source.name),
                counted.get(source.metric),
                reads_all=True,
            )
            for source in self.sources
            if source.can_reject
        )
        self.told[number] = somewhere([part for part in found if part is not None], "")
        while len(self.told) > MAX_KEPT:
            del self.told[min(self.told)]

    def rejected_in(self, batch: int) -> Told | None:
        """Return what a batch rejected, None where another run wrote it: then nothing is known."""
        can_reject = any(source.can_reject for source in self.sources)
        return self.told.get(batch, None if can_reject else {})

    def _warn_of_rejected(self, execution: Execution) -> None:
        """Rows that do not parse are in no frame, and a topic has no table for them beside it."""
        if self._has_warned:
            return
        counted = execution.counted()
        for source in self.sources:
            number = counted.get(source.metric, {}).get(REJECTED)
            if source.can_reject and number:
                self._has_warned = True
                log.warning(
                    "the topic %s has rows that do not parse: %d in this batch. They are not "
                    "written to %s: stream them with rejected(), or call topic() with "
                    "rejects='keep'",
                    source.name,
                    number,
                    self.sink.shown,
                )

    def finish(self) -> None:
        """Do nothing: no rows wait."""

    @property
    def checkpoint(self) -> Files:
        """The folder where Spark keeps the query's place."""
        return self.place.files

    @property
    def table(self) -> str:
        """What the query writes to."""
        return self.sink.shown

    @property
    def destination(self) -> Destination:
        """What the journey says of the topic."""
        return Destination("topic", self.sink.topic)

    @property
    def rejected_reason(self) -> None:
        """Return None: no rejected row is kept, so none is looked at."""

    @property
    def reads_committed(self) -> frozenset[str]:
        """The topics of which it reads no records of aborted transactions."""
        return read_committed_of(self.sources)

    @property
    def unknown_fields(self) -> Unknown:
        """The fields of the values that the schemas lack, as far as this run has seen some."""
        return self.unknown.found

    def query_id(self) -> str:
        """Return the query's id, empty until Spark has written it in the checkpoint."""
        if not self._query_id:
            self._query_id = self.place.query_id()
        return self._query_id

    def version_of(self, batch: int) -> None:
        """Return None: a topic has no versions."""
