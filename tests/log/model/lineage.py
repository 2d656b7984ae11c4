"""What happened in the log up to its end, from the first batch on, though retention, DeleteRecords
and compaction may have removed it from the files.

Only a cut of the end changes the past. So the producers as of any offset, which a snapshot must
hold, follow from it. The rules are those of Kafka's ProducerStateEntry and ProducerStateManager,
written here a second time, as simply as possible: each batch has a copy of all producers after it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from tests.log.model.batches import Batch

from ottla.records.control import ControlType


class Trace(NamedTuple):
    """What is kept of one data batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int


class Known(NamedTuple):
    """One producer. `started` is the first offset of its open transaction, or -1."""

    epoch: int = -1
    coordinator_epoch: int = -1
    timestamp_ms: int = -1
    started: int = -1
    traces: tuple[Trace, ...] = ()
    """All of this epoch."""

    def after(self, batch: Batch) -> Known:
        header = batch.header
        epoch = header.producer_epoch
        traces = self.traces if epoch == self.epoch else ()
        if batch.marker is not None:
            marker = batch.marker
            return Known(epoch, marker.coordinator_epoch, marker.timestamp_ms, -1, traces)
        if header.is_control:
            return self  # an empty marker says nothing
        trace = Trace(
            batch.last_sequence, batch.last, batch.last - batch.base, header.max_timestamp
        )
        started = self.started
        if header.is_transactional and started < 0:
            started = batch.base
        traces = (*traces, trace)
        return Known(epoch, self.coordinator_epoch, header.max_timestamp, started, traces)


Producers = dict[int, Known]
"""By producer id. Never changed, so that batches can share it."""


class Ended(NamedTuple):
    """A transaction with its marker."""

    producer_id: int
    first: int
    marker: int
    is_aborted: bool


class Lineage:
    """All batches, oldest first, with the producers after each."""

    def __init__(self, offset: int = 0) -> None:
        self.began = offset
        self._nexts: list[int] = []
        self._states: list[Producers] = []
        self.ended: list[Ended] = []
        self.batches: list[Batch] = []

    @property
    def producers(self) -> Producers:
        return self._states[-1] if self._states else {}

    def at(self, offset: int) -> Producers:
        """The producers after the last batch that ends before `offset`."""
        number = bisect_right(self._nexts, offset)
        return self._states[number - 1] if number else {}

    def append(self, batch: Batch) -> None:
        producers = self.producers
        if batch.producer_id >= 0:
            known = producers.get(batch.producer_id, Known())
            if batch.marker is not None and known.started >= 0:
                aborted = batch.marker.type is ControlType.abort
                self.ended.append(Ended(batch.producer_id, known.started, batch.base, aborted))
            producers = {**producers, batch.producer_id: known.after(batch)}
        self.batches.append(batch)
        self._nexts.append(batch.next)
        self._states.append(producers)

    def fork(self) -> Lineage:
        """A copy, to look ahead with."""
        made = Lineage(self.began)
        made._nexts, made._states = list(self._nexts), list(self._states)
        made.ended, made.batches = list(self.ended), list(self.batches)
        return made

    def cut(self, end_offset: int) -> None:
        """Forget the batches that end after it."""
        keep = bisect_right(self._nexts, end_offset)
        del self.batches[keep:], self._nexts[keep:], self._states[keep:]
        self.ended = [each for each in self.ended if each.marker < end_offset]

    def has_batch_from(self, producer_id: int, offset: int) -> bool:
        """Whether the producer has a batch at `offset` or above."""
        first = bisect_right(self._nexts, offset)
        return any(batch.producer_id == producer_id for batch in self.batches[first:])

    def transaction_batches(self, producer_id: int, first: int, end: int) -> list[Batch]:
        """The producer's batches from offset `first` up to `end`."""
        number = bisect_left(self._nexts, first + 1)
        return [
            batch
            for batch in self.batches[number:]
            if batch.base < end and batch.producer_id == producer_id and batch.is_data
        ]
