"""What a broker answers about the topics of `data_folder`: all that a client can see of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.damage.data_folder import FIRST_MS, GROUP

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, ensure_crc, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

FETCH, LIST_OFFSETS, OFFSET_FETCH, DESCRIBE_PRODUCERS, OFFSET_FOR_LEADER_EPOCH = 1, 2, 9, 61, 23
PARTITIONS = (("plain", 0), ("plain", 1), ("transactions", 0), ("compacted", 0))
TIMES = (-1, -2, -3, *(FIRST_MS + at for at in (0, 1, 2_500, 9_001, 15_000, 23_000, 99_000)))
MAX_FETCHES = 300
SMALL_BYTES, ALL_BYTES = 1, 1 << 20
STEP = 7


class Answers(NamedTuple):
    """By topic, what a client would see; comparable."""

    topics: dict[str, Any]
    corrupt: set[str]
    """Topics from which a batch came whose checksum is wrong: the client says so."""


async def ask_all(call: Any) -> Answers:
    """Reads only."""
    topics: dict[str, Any] = {"": await _topics(call)}
    corrupt: set[str] = set()
    for topic, index in PARTITIONS:
        asked = _Partition(call, topic, index)
        topics[f"{topic}-{index}"] = await asked.all()
        if asked.is_corrupt:
            corrupt.add(f"{topic}-{index}")
    return Answers(topics, corrupt)


async def write_one_each(call: Any) -> dict[str, Any]:
    """Append a record to each partition: its offset, or the error."""
    offsets: dict[str, Any] = {}
    for topic, index in PARTITIONS:
        key = b"new" if topic == "compacted" else None
        batch = _keyed(key) if key else call.batch(b"new", time_ms=FIRST_MS + 50_000)
        answer = await call.produce(topic, batch, index=index)
        offsets[f"{topic}-{index}"] = (answer.error_code.name, answer.base_offset)
    return offsets


def _keyed(key: bytes) -> bytes:
    return build_batch([Record(0, FIRST_MS + 50_000, key, b"new")])


async def _topics(call: Any) -> Any:
    image = call.node.image
    build = call.request(OFFSET_FETCH, 7)
    asked = build.OffsetFetchRequestTopic(name="plain", partition_indexes=(0, 1))
    answer = await call.ask(
        build.OffsetFetchRequest(group_id=GROUP, topics=(asked,), require_stable=False)
    )
    committed = [
        (each.error_code.name, each.committed_offset, each.metadata)
        for topic in answer.topics
        for each in topic.partitions
    ]
    return (
        answer.error_code.name,
        committed,
        sorted(
            (
                topic.name,
                str(topic.topic_id),
                len(topic.partitions),
                sorted(topic.overrides.items()),
            )
            for topic in image.topics.values()
        ),
    )


class _Partition:
    def __init__(self, call: Any, topic: str, index: int) -> None:
        self._call, self._topic, self._index = call, topic, index
        self.is_corrupt = False

    async def all(self) -> Any:
        offsets = [
            [await self._offset(time_ms, isolation) for time_ms in TIMES] for isolation in (0, 1)
        ]
        earliest, latest = offsets[0][1][1], offsets[0][0][1]
        return {
            "offsets": offsets,
            "records": await self._records(earliest, committed=False),
            "committed": await self._records(earliest, committed=True),
            "from each": [
                await self._first_from(offset)
                for offset in range(max(earliest, 0), max(latest, 0), STEP)
            ],
            "producers": await self._producers(),
            "epochs": [await self._end_of(epoch) for epoch in range(2)],
        }

    async def _offset(self, time_ms: int, isolation: int) -> tuple[str, int, int | str]:
        build = self._call.request(LIST_OFFSETS, 7)
        asked = build.ListOffsetsPartition(partition_index=self._index, timestamp=time_ms)
        topic = build.ListOffsetsTopic(name=self._topic, partitions=(asked,))
        answer = await self._call.ask(
            build.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,))
        )
        found = answer.topics[0].partitions[0]
        time = -1 if found.timestamp is None else found.timestamp
        return found.error_code.name, found.offset, time if isinstance(time, int) else str(time)

    async def _fetch(self, offset: int, max_bytes: int, isolation: int) -> Any:
        build = self._call.request(FETCH, 11)
        asked = build.FetchPartition(
            partition=self._index,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            current_leader_epoch=-1,
            log_start_offset=-1,
        )
        topic = build.FetchTopic(topic=self._topic, partitions=(asked,))
        answer = await self._call.ask(
            build.FetchRequest(
                replica_id=-1,
                max_wait=0,
                min_bytes=0,
                isolation_level=isolation,
                topics=(topic,),
            )
        )
        return answer.responses[0].partitions[0]

    async def _first_from(self, offset: int) -> Any:
        found = await self._fetch(offset, SMALL_BYTES, 0)
        data = bytes(found.records or b"")
        if found.error_code is not ErrorCode.none or len(data) < HEADER_BYTES:
            return offset, found.error_code.name
        header = read_header(data)
        return offset, header.base_offset, header.last_offset

    async def _records(self, offset: int, *, committed: bool) -> Any:
        """All records, as a client reads them, and why it stopped."""
        found: list[Any] = []
        for _ in range(MAX_FETCHES):
            answer = await self._fetch(offset, 2_000, int(committed))
            data = bytes(answer.records or b"")
            if answer.error_code is not ErrorCode.none or len(data) < HEADER_BYTES:
                return found, answer.error_code.name, answer.high_watermark
            try:
                offset = self._take(data, offset, answer.aborted_transactions, found)
            except (CorruptBatchError, ValueError, IndexError):
                self.is_corrupt = True
                return found, "corrupt", answer.high_watermark
        return found, "endless", -1

    def _take(self, data: bytes, offset: int, aborted: Any, found: list[Any]) -> int:
        """Like a client under read_committed, skip what is aborted (CompletedFetch)."""
        waiting = sorted((each.first_offset, each.producer_id) for each in aborted or ())
        skipped: set[int] = set()
        position, next_offset = 0, offset
        while len(data) - position >= HEADER_BYTES:
            header = read_header(data, position)
            if position + header.size_bytes > len(data):
                break
            batch = data[position : position + header.size_bytes]
            ensure_crc(header, batch)
            while waiting and waiting[0][0] <= header.last_offset:
                skipped.add(waiting.pop(0)[1])
            if header.is_control:
                skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                found += [
                    (each.offset, each.timestamp_ms, each.key, each.value)
                    for each in iterate_records(batch)
                    if each.offset >= offset
                ]
            next_offset = header.next_offset
            position += header.size_bytes
        if next_offset <= offset:
            raise ValueError("no progress")
        return next_offset

    async def _end_of(self, epoch: int) -> Any:
        """Where the epoch ended: a returning follower cuts its log there."""
        build = self._call.request(OFFSET_FOR_LEADER_EPOCH, 3)
        asked = build.OffsetForLeaderPartition(
            partition=self._index, current_leader_epoch=-1, leader_epoch=epoch
        )
        topic = build.OffsetForLeaderTopic(topic=self._topic, partitions=(asked,))
        answer = await self._call.ask(
            build.OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))
        )
        found = answer.topics[0].partitions[0]
        return found.error_code.name, found.leader_epoch, found.end_offset

    async def _producers(self) -> Any:
        build = self._call.request(DESCRIBE_PRODUCERS, 0)
        topic = build.TopicRequest(name=self._topic, partition_indexes=(self._index,))
        answer = await self._call.ask(build.DescribeProducersRequest(topics=(topic,)))
        found = answer.topics[0].partitions[0]
        return found.error_code.name, sorted(
            (each.producer_id, each.producer_epoch, each.last_sequence)
            for each in found.active_producers
        )
