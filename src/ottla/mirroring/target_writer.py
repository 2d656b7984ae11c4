"""Writes records, the offset map and the positions in the source in one transaction at the target.

The positions are offsets of a group of the target, which shares the partitions among the instances
of a mirror (`group_member`). An instance that takes over waits until the transaction of the one
before has ended, as its positions are not stable before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.record_headers import headers_of
from ottla.mirroring.clusters import partition_at
from ottla.mirroring.names import map_topic_of
from ottla.mirroring.offset_map import Run
from ottla.mirroring.offset_map_records import map_records, start_record
from ottla.mirroring.open_entries import OpenEntries
from ottla.mirroring.position import Position, written
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.target_producer import TargetProducer, TransactionFailed
from ottla.mirroring.written_records import Piece, joined

MAX_UNDELIVERED_BYTES: Final = 32_000_000
"""About; twice as much where records come in turn with larger ones."""


class TargetWriter:
    """What one instance writes, by its producer."""

    def __init__(self, spec: MirrorSpec, producer: TargetProducer) -> None:
        self._spec = spec
        self._producer = producer
        self._map_topic = map_topic_of(spec.name)
        self._pieces: dict[TopicPartition, list[Piece]] = {}
        """Of the open transaction, in order."""
        self._added_records = self._added_bytes = 0
        """Since undelivered ones were awaited."""
        self._shared: set[str] = set()
        """Topics of the target that others write to also: each record's delivery is reported."""
        self._entries = OpenEntries()

    def add(self, partition: TopicPartition, records: Sequence[Any]) -> None:
        """Adds records of the source to the transaction, in their order. Raises
        TransactionFailed.
        """
        self._producer.open()
        piece = Piece([each.offset() for each in records])
        self._pieces.setdefault(partition, []).append(piece)
        reports = self._reports_to(piece)
        is_shared = self._spec.into_existing or partition.topic in self._shared
        last = len(records) - 1
        for at, record in enumerate(records):
            kind, timestamp_ms = record.timestamp()
            key = record.key()
            self._producer.produce(
                partition.topic,
                record.value(),
                key,
                partition=partition.partition,
                # Records of the oldest format have none.
                timestamp=timestamp_ms if kind else 0,
                headers=headers_of(record),
                on_delivery=reports if is_shared or at in (0, last) else None,
            )
            self._added_records += 1
            self._added_bytes += len(record) + len(key or b"")
            if self._added_bytes >= MAX_UNDELIVERED_BYTES:
                self._await_older()

    def _await_older(self) -> None:
        """Waits for what was added before the last of these bytes, so that no more than twice as
        many are in memory. Raises TransactionFailed.
        """
        self._producer.await_delivered(but=self._added_records)
        self._added_records = self._added_bytes = 0

    def _reports_to(self, piece: Piece) -> Callable[[Any, Any], None]:
        """Called in the order of the records: the producer is idempotent."""

        def delivered(error: Any, record: Any) -> None:
            if error is not None:
                self._producer.note_problem(error, record.topic())
            else:
                piece.reported.append(record.offset())

        return delivered

    def commit(
        self,
        positions: Mapping[TopicPartition, Position],
        names: Mapping[str, str],
        starts: Mapping[TopicPartition, int],
        check: Callable[[], None],
    ) -> None:
        """Commits the records, their offsets and these positions. `names`: of the source's topics,
        by name at the target. `starts`: partitions of which this is the first transaction, with the
        target offset from which it writes. `check` is called last; what it raises aborts.

        Raises TransactionFailed and TakenOverError.
        """
        self._producer.open()
        for partition, target in starts.items():
            of = TopicPartition(names[partition.topic], partition.partition)
            position = positions[partition]
            self._write_map(*start_record(of, position.offset, target, position.origin))
        self._producer.flush()
        for partition, runs in self._runs().items():
            of = TopicPartition(names[partition.topic], partition.partition)
            for key, value in map_records(of, self._entries.joined(partition, runs)):
                self._write_map(key, value)
        offsets = [
            partition_at(partition, position.offset, position.epoch, written(position))
            for partition, position in positions.items()
        ]
        check()
        self._producer.commit(offsets)
        self._entries.note_committed()
        self._forget_records()

    def _write_map(self, key: bytes, value: bytes) -> None:
        def delivered(error: Any, _record: Any) -> None:
            if error is not None:
                self._producer.note_problem(error, self._map_topic)

        self._producer.produce(self._map_topic, value, key, partition=0, on_delivery=delivered)

    def _runs(self) -> dict[TopicPartition, list[Run]]:
        """Raises TransactionFailed."""
        found = {}
        for partition, pieces in self._pieces.items():
            runs: list[Run] = []
            for piece in pieces:
                some = piece.runs()
                if some is None:
                    self._shared.add(partition.topic)
                    raise TransactionFailed(
                        f"topic {partition.topic!r} at the target got records of others meanwhile."
                    )
                runs += some
            found[partition] = joined(runs)
        return found

    def abort(self) -> None:
        """Nothing of the open transaction will be read. Raises LibrdkafkaError."""
        self._entries.forget()
        self._forget_records()
        self._producer.abort()

    def _forget_records(self) -> None:
        self._pieces.clear()
        self._added_records = self._added_bytes = 0
