"""A batch in one transaction, written by the JVM of a local Spark.

There the driver's JVM also has the tasks, so one producer can write the whole batch, and its rows
pass neither through a shuffle nor through Python (100,000 rows of 250 B: 0.5 s against 0.9 s). All
tasks' marks (`sinks.topic.task`) are committed in that transaction, so a batch may be tried again
either way.

It needs that Spark gives each row to the sink once, or fails: no shuffle, and no second try of a
task. A batch of which a task is written already, and one that Kafka refuses here, is written by
tasks.

The transactional id is `<group>-batch`. With a new producer it goes like this:

1. InitProducerId of `<group>-batch`, then of each task's id.
2. The marks are read: none may have this batch.
3. Rows and marks are written, and committed.

The next batch of this producer has only the third step: an attempt that began meanwhile fences it.
The same batch again (what followed its transaction has failed, such as Spark's own commit) has the
second one, too.

A task does it the other way round: its own id, then `<group>-batch`, then its mark. So of two
attempts of one batch, whatever they are, the second one either ends the first one's transaction or
finds its marks: if the task's InitProducerId of `<group>-batch` is the later one, it fences this
attempt; if it is the earlier one, then so was that of the task's own id, and step 1 fences the
task.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.pipelines.sinks.topic.jvm import (
    BatchProducer,
    has_producers,
    kafka_failure,
    may_pass,
)
from ottla.pipelines.sinks.topic.task import (
    TIMEOUT_S,
    NotWrittenError,
    TaskOfBatch,
    fence,
    mark_of,
    whole_batch_id,
)
from ottla.pipelines.spark.jvm.computed_once import computes_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_REFUSED: Final = 2
"""Of so many batches one after the other Kafka ended the transaction: the rest of this run is
written by tasks. A batch that takes longer than `transaction.timeout.ms` is written twice for that.
"""

log: Final = logging.getLogger("ottla.pipelines")

_TIMEOUT_MS: Final = str(int(TIMEOUT_S * 1_000))
_LIMITS: Final = {
    "max.block.ms": _TIMEOUT_MS,
    "delivery.timeout.ms": _TIMEOUT_MS,
}


@dataclass
class OneTransaction:
    """Writes batches of one query; `settings` are those of Java's producer by its own names."""

    spark: SparkSession
    settings: Mapping[str, str] = field(repr=False)  # they may be secret
    tasks: int
    _producer: BatchProducer | None = field(default=None, init=False, repr=False)
    _last: int | None = field(default=None, init=False, repr=False)
    _has_producers: bool | None = field(default=None, init=False, repr=False)
    _refused: int = field(default=0, init=False, repr=False)

    def takes(self, records: DataFrame) -> bool:
        """Tell whether a frame can be written in one transaction."""
        if self._refused >= MAX_REFUSED:
            return False
        if self._has_producers is None:
            self._has_producers = has_producers(self.spark)
        return self._has_producers and computes_once(records)

    def write(self, records: DataFrame, batch: TaskOfBatch, has_part: Callable[[], bool]) -> bool:
        """Write a batch; return False where its tasks must write it.

        `has_part` reads the marks: whether a task has this batch. Raises what `has_part` raises,
        the failure of the query, and NotWrittenError where the brokers are away.
        """
        from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
        from pyspark.errors import PySparkException

        try:
            written = self._write(records, batch, has_part)
        except (Py4JJavaError, PySparkException) as error:
            failure = kafka_failure(error)
            self._end(abort=failure is None)
            if failure is None:
                raise
            words = f"{batch.topic}: {failure.plain} ({failure.kind})"
            if may_pass(self.spark, failure.kind):
                raise NotWrittenError(words) from error
            log.info("Not written in one transaction: %s", words)
            self._refused += 1
            return False
        except Py4JNetworkError:
            raise  # the JVM has ended
        except Py4JError as error:
            # A method that this Spark does not have: a vendor's may differ.
            self._end(abort=True)
            log.info("Not written in one transaction: %s", error)
            self._has_producers = False
            return False
        except BaseException:
            self._end(abort=True)
            raise
        self._refused = 0
        return written

    def _write(self, records: DataFrame, batch: TaskOfBatch, has_part: Callable[[], bool]) -> bool:
        may_be_there = self._producer is None or batch.batch == self._last
        if self._producer is None:
            self._producer = self._start(batch)
        if (may_be_there and has_part()) or not self._producer.is_shared():
            self._end(abort=False)  # the tasks fence it
            return False
        self._producer.begin()
        self._producer.write(records, batch.topic)
        mark = mark_of(batch.batch, None, batch.ends)
        self._producer.commit(batch.group, batch.topic, range(self.tasks), mark)
        self._last = batch.batch
        return True

    def _start(self, batch: TaskOfBatch) -> BatchProducer:
        name = whole_batch_id(batch.group)
        # The pool gives a producer again, also one that is closed; a name of its own prevents that.
        own = {"transactional.id": name, "client.id": f"{name}-{uuid.uuid4().hex[:8]}"}
        producer = BatchProducer(self.spark, _LIMITS | dict(self.settings) | own)
        self._producer = producer
        producer.start()
        for task in range(self.tasks):
            fence(batch, task)
        return producer

    def _end(self, *, abort: bool) -> None:
        """Close the producer: the next batch begins with a new one, which ends what is open."""
        from py4j.protocol import Py4JJavaError

        producer, self._producer = self._producer, None
        if producer is None:
            return
        # The failure is raised; a new producer's InitProducerId aborts as well.
        with contextlib.suppress(Py4JJavaError):
            if abort:
                producer.abort()
        with contextlib.suppress(Py4JJavaError):
            producer.close()

    def close(self) -> None:
        """Close the producer."""
        self._end(abort=False)
