"""The log of a coordinator, over a partition that this broker leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.coordinator.coordinator_log import KeyAndValue, LogMarker, LogRecord, Verification
from ottla.log.producer_state import NO_SEQUENCE
from ottla.log.verification import NOT_REQUIRED, Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_plain_batch
from ottla.records.control import ControlType, read_end_marker, write_end_marker
from ottla.records.header import BatchHeader, read_header
from ottla.records.iterate import iterate_records
from ottla.replica.partition import Partition
from ottla.shards.step import ProducerEpoch, TransactionMarker

READ_BYTES: Final = 4 << 20
COMMIT_TIMEOUT_MS: Final = 60_000
"""More than any kind of coordinator waits."""


class PartitionLog:
    """Records in, records out, in the leadership that the partition has now."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._leadership = partition.leadership
        self.leader_epoch: Final = partition.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self._partition.acknowledged_offset

    @property
    def max_batch_bytes(self) -> int:
        config = self._partition.log.config
        return min(config.max_message_bytes, config.segment_bytes)

    def check(self) -> None:
        """Raises ApiError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS."""
        self._partition.appends.check_own(self._leadership)

    def begin_verification(self, producer: ProducerEpoch, *, version_2: bool) -> Verification:
        """See `CoordinatorLog`. Raises ApiError: INVALID_PRODUCER_EPOCH, NOT_LEADER_OR_FOLLOWER."""
        guard = self._partition.appends.begin_verification(
            producer.producer_id, producer.epoch, NO_SEQUENCE, version_2=version_2
        )
        # Without a guard the transaction is ongoing. A new one equals none, so that the append is
        # refused if the transaction has ended by then.
        return Verification(Guard() if guard is None else guard, guard is not None)

    def append(
        self,
        records: Sequence[KeyAndValue],
        now_ms: int,
        producer: ProducerEpoch | None = None,
        guard: object | None = None,
    ) -> int:
        """Appends one batch and returns its last offset.

        Raises ApiError: NOT_LEADER_OR_FOLLOWER also if this broker has begun to lead again since,
        for then a later coordinator has read the log.
        """
        if producer is None:
            return self._append(build_plain_batch(records, now_ms), now_ms)
        batch = build_plain_batch(
            records,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            is_transactional=True,
        )
        if guard is None:
            return self._append(batch, now_ms)
        assert isinstance(guard, Guard), "it comes from begin_verification"
        return self._append(batch, now_ms, guard=guard)

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        """Appends a control batch and returns its offset; raises ApiError as `append`."""
        batch = write_end_marker(
            ControlType.commit if marker.is_commit else ControlType.abort,
            marker.producer.producer_id,
            marker.producer.epoch,
            marker.coordinator_epoch,
            now_ms,
        )
        return self._append(batch, now_ms, transaction_version=marker.transaction_version)

    def _append(
        self,
        batch: bytes,
        now_ms: int,
        *,
        guard: Guard = NOT_REQUIRED,
        transaction_version: int = 0,
    ) -> int:
        max_bytes = self._partition.log.config.max_message_bytes
        if len(batch) > max_bytes:
            raise ApiError(ErrorCode.message_too_large, f"{len(batch)} bytes of {max_bytes}")
        headers = [read_header(batch)]
        appended = self._partition.appends.append_own(
            batch,
            headers,
            now_ms,
            self._leadership,
            guard=guard,
            transaction_version=transaction_version,
        )
        return appended.last_offset

    def read_all(self) -> Iterator[LogRecord | LogMarker]:
        """Every record and marker from the log's start on."""
        log = self._partition.log
        offset, end_offset = log.start_offset, log.end_offset
        while offset < end_offset:
            data = log.read(offset, max_bytes=READ_BYTES).read()
            position = 0
            while position + 61 <= len(data):
                header = read_header(data, position)
                batch = memoryview(data)[position : position + header.size_bytes]
                if len(batch) < header.size_bytes:
                    break
                if header.is_control:
                    yield from _marker(header, batch)
                elif header.count > 0:
                    yield from _records(header, batch, offset)
                position += header.size_bytes
                offset = max(offset, header.next_offset)
            if position == 0:
                return  # compaction left nothing up to the end

    async def committed(self, offset: int) -> bool:
        """Returns when all in-sync replicas have it; False if another broker leads before that.

        Raises ApiError where too few replicas are in sync; the caller limits the time.
        """
        try:
            await self._partition.acknowledged_to(offset, self._leadership, COMMIT_TIMEOUT_MS)
        except ApiError as error:
            if error.code is ErrorCode.not_leader_or_follower:
                return False
            raise
        return offset < self._partition.high_watermark


def _records(header: BatchHeader, batch: memoryview, from_offset: int) -> Iterator[LogRecord]:
    producer = None
    if header.is_transactional:
        producer = ProducerEpoch(header.producer_id, header.producer_epoch)
    for record in iterate_records(batch):
        if record.offset >= from_offset:
            yield LogRecord(record.offset, record.key, record.value, record.timestamp_ms, producer)


def _marker(header: BatchHeader, batch: memoryview) -> Iterator[LogMarker]:
    end = read_end_marker(batch)
    if end is not None:  # compaction may have left the batch empty
        producer = ProducerEpoch(header.producer_id, header.producer_epoch)
        is_commit = end.type is ControlType.commit
        yield LogMarker(
            header.base_offset, TransactionMarker(producer, is_commit, end.coordinator_epoch)
        )
