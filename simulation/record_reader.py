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
from simulation.clients import FETCH_VERSION, LIST_OFFSETS, MAX_FETCH_BYTES, RETRY_S
from simulation.connection import Connections, NoAnswerError
from simulation.record_ledger import Place, RecordLedger, decode

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LATEST: Final = -1
POLLS_PER_LATEST: Final = 4


class RecordReader:
    """Reads one partition from its beginning and tells the ledgers of its records."""

    def __init__(
        self,
        place: Place,
        isolation: int,
        connections: Connections,
        ledgers: Mapping[str, RecordLedger],
        fail: Callable[[str], None],
    ) -> None:
        """`fail` is called for an anomaly of the partition."""
        self.place = place
        self.offset = 0
        self.high_watermark = 0
        """Of the newest answer."""
        self.stable_offset = 0
        self._isolation = isolation
        self._connections = connections
        self._ledgers = ledgers
        self._fail = fail
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
            if polls % POLLS_PER_LATEST == 0 and self._isolation == READ_COMMITTED:
                await self._ask_latest()

    async def poll(self, max_wait_ms: int = 300) -> bool:
        """Fetch once; False if the fetch failed."""
        topic, partition = self.place
        try:
            leader, epoch = await self._connections.leader_and_epoch(topic, partition)
            request = self._request(epoch, max_wait_ms)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            self._connections.forget_leader(topic, partition)
            return False
        found = answer.responses[0].partitions[0]
        if ErrorCode(found.error_code) is not ErrorCode.none:
            self._connections.forget_leader(topic, partition)
            if ErrorCode(found.error_code) is ErrorCode.offset_out_of_range:
                # Only the loss of all in-sync replicas removes what was read; the ledgers are not
                # judged then.
                self.offset = 0
            return False
        self.high_watermark, self.stable_offset = found.high_watermark, found.last_stable_offset
        self._stable_seen(epoch, found.last_stable_offset, is_latest=False)
        self._take(bytes(found.records or b""), found.aborted_transactions or ())
        return True

    def _request(self, epoch: int, max_wait_ms: int) -> Any:
        build = messages_of(FETCH, FETCH_VERSION, "request")
        topic, partition = self.place
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
                continue
            if header.base_offset != self.offset:
                self._fail(f"{self._name} has a gap: {self.offset} to {header.base_offset}")
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
        is_committed = self._isolation == READ_COMMITTED
        if is_committed and header.is_transactional and header.producer_id in active:
            return
        for record in iterate_records(batch, header):
            value = decode(record.value or b"")
            if is_committed:
                self._ledgers[value.name].read(value, self.place)
            else:
                self._ledgers[value.name].read_uncommitted(value, self.place)

    async def _ask_latest(self) -> None:
        topic, index = self.place
        build = messages_of(LIST_OFFSETS, 4, "request")
        partition = build.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        request = build.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=(build.ListOffsetsTopic(name=topic, partitions=(partition,)),),
        )
        try:
            leader = await self._connections.leader(topic, index)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            self._connections.forget_leader(topic, index)
            return
        found = answer.topics[0].partitions[0]
        if ErrorCode(found.error_code) is ErrorCode.none:
            self._stable_seen(found.leader_epoch, found.offset, is_latest=True)

    def _stable_seen(self, epoch: int, offset: int, *, is_latest: bool) -> None:
        """The last stable offset of an answer: it must not go back.

        A new leader's high watermark may be behind that of the former one: then its ListOffsets
        has no answer yet (KIP-207), but its fetches have.
        """
        known_epoch, known = self._stable
        if is_latest:
            known = max(known, self._latest)
            self._latest = max(offset, self._latest)
        if epoch < known_epoch or (epoch > known_epoch and not is_latest):
            known = -1
        if offset < known:
            self._fail(
                f"{self._name}: the last stable offset {known} of epoch {known_epoch} went back to "
                f"{offset} in epoch {epoch}"
            )
        if epoch >= known_epoch:
            self._stable = (epoch, offset)

    @property
    def _name(self) -> str:
        topic, partition = self.place
        return f"{topic}-{partition}"
