"""Readers of the partitions that transactions write to: read_committed and read_uncommitted.

A reader leaves out aborted records as clients do it: by the transactions that the response lists,
and the abort markers in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH
from ottla.records.control import ControlType, read_end_marker
from ottla.records.header import BatchHeader, iterate_headers
from ottla.records.iterate import iterate_records
from simulation.clients import FETCH_VERSION, LIST_OFFSETS, MAX_FETCH_BYTES
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.record_ledger import PartitionKey, RecordLedger, decode

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LATEST: Final = -1
POLLS_PER_LATEST: Final = 4


class RecordReader:
    """Reads one partition from its beginning and tells the ledgers of its records."""

    def __init__(
        self,
        partition_key: PartitionKey,
        isolation: int,
        connections: Connections,
        ledgers: Mapping[str, RecordLedger],
        fail: Callable[[str], None],
        start_of: Callable[[PartitionKey], int] = lambda partition_key: 0,
        *,
        polls_per_latest: int = POLLS_PER_LATEST,
    ) -> None:
        """`fail` is called for an anomaly of the partition. `start_of`: where a reader begins again
        whose offset is out of range: where DeleteRecords was asked to begin the partition."""
        self.partition_key = partition_key
        self.offset = 0
        self.high_watermark = 0
        """Of the newest answer."""
        self.stable_offset = 0
        self._isolation = isolation
        self._connections = connections
        self._ledgers = ledgers
        self._fail = fail
        self._start_of = start_of
        self._polls_per_latest = polls_per_latest
        self._may_be_inside = False
        """The reader has begun again, perhaps inside of a batch."""
        self._stable = (-1, -1)
        """The newest leader epoch that answered, and its last stable offset."""
        self._latest = -1
        """The largest one that ListOffsets returned."""

    async def run(self) -> None:
        polls = 0
        while True:
            polls += 1
            if not await self.poll():
                await asyncio.sleep(RETRY_S)
            if polls % self._polls_per_latest == 0 and self._isolation == READ_COMMITTED:
                await self._ask_latest()

    async def poll(self, max_wait_ms: int = 300) -> bool:
        """Fetch once; False if the fetch failed."""
        topic, partition = self.partition_key
        before = self.offset
        try:
            leader, epoch = await self._connections.leader_and_epoch(topic, partition)
            request = self._request(epoch, max_wait_ms)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            self._connections.forget_leader(topic, partition)
            return False
        if self.offset != before:
            return True  # the last checks poll, too, and were answered first
        found = answer.responses[0].partitions[0]
        if ErrorCode(found.error_code) is not ErrorCode.none:
            self._connections.forget_leader(topic, partition)
            if ErrorCode(found.error_code) is ErrorCode.offset_out_of_range:
                # Else only the loss of all in-sync replicas removes what was read; the ledgers are
                # not judged then.
                self.offset = self._start_of(self.partition_key)
                self._may_be_inside = True
            return False
        self.high_watermark, self.stable_offset = found.high_watermark, found.last_stable_offset
        self._stable_seen(epoch, found.last_stable_offset, is_latest=False)
        self._take(bytes(found.records or b""), found.aborted_transactions or ())
        return True

    def _request(self, epoch: int, max_wait_ms: int) -> Any:
        build = messages_of(FETCH, FETCH_VERSION, "request")
        topic, partition = self.partition_key
        wanted = build.FetchPartition(
            partition=partition,
            current_leader_epoch=epoch,
            fetch_offset=self.offset,
            partition_max_bytes=MAX_FETCH_BYTES,
        )
        return build.FetchRequest(
            max_wait=max_wait_ms,
            min_bytes=1,
            max_bytes=MAX_FETCH_BYTES,
            isolation_level=self._isolation,
            session_epoch=-1,
            topics=(build.FetchTopic(topic=topic, partitions=(wanted,)),),
        )

    def _take(self, data: bytes, aborted: Iterable[Any]) -> None:
        active: set[int] = set()
        """Producers in whose aborted transaction the reader is."""
        coming = sorted((each.first_offset, each.producer_id) for each in aborted)
        position = 0
        for header in iterate_headers(data):
            batch = data[position : position + header.size_bytes]
            position += header.size_bytes
            if header.next_offset <= self.offset:
                self._fail(
                    f"{self._name}: a fetch at {self.offset} begins with {header.base_offset} to "
                    f"{header.last_offset}"
                )
                continue
            is_inside = self._may_be_inside and header.base_offset < self.offset
            if header.base_offset != self.offset and not is_inside:
                self._fail(f"{self._name} has a gap: {self.offset} to {header.base_offset}")
            self._may_be_inside = False
            while coming and coming[0][0] <= header.last_offset:
                active.add(coming.pop(0)[1])
            self._take_batch(header, batch, active)
            self.offset = header.next_offset

    def _take_batch(self, header: BatchHeader, batch: bytes, active: set[int]) -> None:
        if header.is_control:
            marker = read_end_marker(batch)
            if header.next_offset != header.base_offset + 1:
                self._fail(f"{self._name}: a marker takes {header.base_offset}.."
                           f"{header.last_offset}")  # fmt: skip
            if marker is not None and marker.type is ControlType.abort:
                active.discard(header.producer_id)
            return
        if not header.is_transactional:
            return  # of a fault: see `simulation.log_faults`
        is_committed = self._isolation == READ_COMMITTED
        if is_committed and header.is_transactional and header.producer_id in active:
            return
        for record in iterate_records(batch, header):
            if record.offset < self.offset:
                continue
            value = decode(record.value or b"")
            if is_committed:
                self._ledgers[value.name].read(value, self.partition_key)
            else:
                self._ledgers[value.name].read_uncommitted(value, self.partition_key)

    async def _ask_latest(self) -> None:
        """Tell whether the latest offset, under read_committed, goes back; or has no answer though
        it has one under read_uncommitted."""
        code, epoch = await self._ask_latest_under(READ_COMMITTED)
        if self._polls_per_latest > 1 or code is not ErrorCode.offset_not_available:
            return
        other, other_epoch = await self._ask_latest_under(READ_UNCOMMITTED)
        code, epoch = await self._ask_latest_under(READ_COMMITTED)
        if (other, code) == (ErrorCode.none, ErrorCode.offset_not_available):
            self._fail(
                f"{self._name}: the latest offset is known under read_uncommitted in epoch "
                f"{other_epoch}, and not under read_committed in epoch {epoch}"
            )

    async def _ask_latest_under(self, isolation: int) -> tuple[ErrorCode | None, int]:
        """The answer's code, None without one, and the leader epoch that the client knew."""
        topic, index = self.partition_key
        build = messages_of(LIST_OFFSETS, 4, "request")
        partition = build.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        request = build.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=(build.ListOffsetsTopic(name=topic, partitions=(partition,)),),
        )
        try:
            leader, epoch = await self._connections.leader_and_epoch(topic, index)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            self._connections.forget_leader(topic, index)
            return None, -1
        found = answer.topics[0].partitions[0]
        code = ErrorCode(found.error_code)
        if code is ErrorCode.none and isolation == READ_COMMITTED:
            self._stable_seen(found.leader_epoch, found.offset, is_latest=True)
        return code, epoch

    def _stable_seen(self, epoch: int, offset: int, *, is_latest: bool) -> None:
        """The last stable offset of an answer: it must not go back.

        A new leader's high watermark may be behind that of the former one: then its ListOffsets
        has no answer yet (KIP-207), but its fetches have. And DeleteRecords may begin a log inside
        of an open transaction: that log's start is then its last stable offset. Another replica
        learns the start by its next fetch. A leader elected before, as Kafka's, has the offset of
        the transaction; one that was emptied at the start does not know the transaction. So such an
        offset is neither compared nor remembered.
        """
        known_epoch, known = self._stable
        is_inside = offset <= self._start_of(self.partition_key)
        if is_latest:
            known = max(known, self._latest)
            if not is_inside:
                self._latest = max(offset, self._latest)
        if epoch < known_epoch or (epoch > known_epoch and not is_latest):
            known = -1
        if offset < known and not is_inside:
            self._fail(
                f"{self._name}: the last stable offset {known} of epoch {known_epoch} went back to "
                f"{offset} in epoch {epoch}"
            )
        if epoch >= known_epoch:
            self._stable = (epoch, -1 if is_inside else offset)

    @property
    def _name(self) -> str:
        topic, partition = self.partition_key
        return f"{topic}-{partition}"
