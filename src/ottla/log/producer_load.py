"""Reads a log's producers again after a truncation: a snapshot, and up to a segment of batches.

Kafka does it in the fetcher's thread, under the log's lock (UnifiedLog.truncateTo,
rebuildProducerState). Here it is a task: made on the event loop, run in a worker thread, applied on
the loop, where it also writes a snapshot at the cut. Until then `Log.loading` is set, and the log
behaves as Kafka's while a fetcher holds the lock: nothing is appended, what needs the producers is
refused with NOT_LEADER_OR_FOLLOWER, and retention and compaction leave the log alone. So only
another cut, the log's deletion or the broker's stop can change the files meanwhile, and each of
them makes this load stale: it then changes nothing.

Crash: the next start recovers the producers with the log. A stop before the load is applied reads
them itself (`Log.close`).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from ottla.log import names
from ottla.log.errors import storage_error
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.producer_snapshot import decode_snapshot
from ottla.log.producer_state import ProducerState
from ottla.log.producers import replay_batches
from ottla.log.scan import in_portions, scan_headers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError


class _Source(NamedTuple):
    """A segment as it is when the load is made."""

    base_offset: int
    path: str
    size_bytes: int


class ProducerLoad:
    """One such load; see `begin`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._cuts = log.cuts
        self._folder = log.folder
        self._snapshots = list(log.snapshots)
        self._replay_from = max(log.replay_from, log.start_offset)
        self._end_offset = log.end_offset
        self._sources = [
            _Source(segment.base_offset, segment.path, segment.size_bytes)
            for segment in log.segments
        ]
        self._state: ProducerState | None = None

    @classmethod
    def begin(cls, log: Log) -> ProducerLoad | None:
        """The load that the log needs; None if its producers are known, or a load is under way.

        Then call `run()` in a worker thread, `apply()` on the loop, and `end()` in any case.
        """
        if log.loading is not None or log.knows_producers:
            return None
        log.loading = load = cls(log)
        return load

    @property
    def is_stale(self) -> bool:
        """The log was cut again, deleted or closed. Any thread may ask."""
        return self._log.loading is not self or self._log.is_closed

    def run(self) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR. Does nothing for long if the load is stale."""
        try:
            self._state = self._load()
        except (OSError, CorruptBatchError, InvalidRecordError) as error:
            if self.is_stale:
                return  # the files have changed or are gone
            doing = f"cannot read the producers of {self._folder}"
            if isinstance(error, OSError):
                raise storage_error(doing, error) from None
            raise ApiError(ErrorCode.kafka_storage_error, f"{doing}: {error}") from None

    def _load(self) -> ProducerState | None:
        state = self._from_snapshot()
        first = bisect_right(self._sources, state.end_offset, key=lambda each: each.base_offset) - 1
        for source in self._sources[max(first, 0) :]:
            if source.size_bytes:
                file = OpenFile(source.path)
                batches = scan_headers(file, 0, source.size_bytes)
                replay_batches(state, file, in_portions(batches, lambda: self.is_stale))
            if self.is_stale:
                return None
        state.end_offset = self._end_offset
        return state

    def _from_snapshot(self) -> ProducerState:
        """The latest valid snapshot; without one there is nothing before where to replay from."""
        for offset in reversed(self._snapshots):
            try:
                with open(
                    f"{self._folder}/{names.file_name(offset, names.SNAPSHOT)}", "rb"
                ) as file:
                    return ProducerState(offset, decode_snapshot(file.read()))
            except (OSError, ValueError):
                continue  # damaged: `load_snapshot` removes it when it finds it
        return ProducerState(self._replay_from)

    def apply(self) -> None:
        """Give the log its producers, and write a snapshot of them; nothing if the load is stale.

        Raises ApiError KAFKA_STORAGE_ERROR if the snapshot cannot be written.
        """
        if self.is_stale or self._state is None:
            return
        assert (self._log.cuts, self._log.end_offset) == (self._cuts, self._end_offset)
        self._log.set_producers(self._state)
        self._log.take_snapshot()

    def end(self) -> None:
        """If the load has failed, the producers are read when they are needed."""
        if self._log.loading is self:
            self._log.loading = None
