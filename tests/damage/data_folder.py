"""A small data folder with every kind of file, as a clean stop and as SIGKILL leave it.

Topics: `plain` (two partitions, several segments, an idempotent producer, a moved log start),
`transactions` (committed and aborted ones across segments), `compacted`. A group has committed
offsets.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ottla.api.table import HANDLERS
from ottla.config import BrokerConfig
from ottla.node.node import Node
from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": "2147483647",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
SMALL = {"internal_segment_bytes": "1500", "index_interval_bytes": "100", "segment_jitter_ms": "0"}
STARTS_AT = 5
"""The log start of plain-0, in the middle of a segment's batch."""
GROUP = "readers"
TRANSACTIONAL_ID = "writer"
FIRST_MS = 1_700_000_000_000

INIT_PRODUCER_ID, END_TXN, OFFSET_COMMIT, DELETE_RECORDS = 22, 26, 8, 21


def node_on(folder: Path) -> Node:
    """A node that is not started yet."""
    return Node(BrokerConfig({**SETTINGS, "log.dirs": str(folder)}), HANDLERS)


async def build(root: Path, call_of: Any) -> None:
    """Write `root/killed` and `root/stopped`. `call_of(node)` is a `NodeCall`."""
    data = root / "stopped"
    node = node_on(data)
    await node.start()
    call = call_of(node)
    for topic, partitions in (("plain", 2), ("transactions", 1)):
        await call.create(topic, partitions, **SMALL)
    await call.create("compacted", 1, cleanup_policy="compact", **SMALL)
    assert not (await node.topic_creation.ensure_transactions_topic()).failed
    assert not (await node.topic_creation.ensure_offsets_topic()).failed
    writer = _Writer(call)
    await writer.begin()
    await writer.write_all(0)
    await node.close()
    # After an unclean stop the partitions get a new leader epoch.
    (data / ".kafka_cleanshutdown").unlink()

    node = node_on(data)
    await node.start()
    writer.call = call = call_of(node)
    await writer.write_all(1)
    await writer.finish()
    await node.log_maintenance.checkpoint()
    await writer.write_all(2)
    await node.timelines.flush(all_of_them=True)  # else it depends on the time that writing took
    await node.log_maintenance.checkpoint_high_watermarks()  # as every five seconds
    shutil.copytree(data, root / "killed")
    await node.close()


class _Writer:
    """Writes the same records to each new folder, but for ids."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self._idempotent = self._transactional = (-1, -1)
        self._sequences: dict[str, int] = {}

    async def begin(self) -> None:
        self._idempotent = await self._producer(None)
        self._transactional = await self._producer(TRANSACTIONAL_ID)

    async def write_all(self, number: int) -> None:
        for n in range(8):
            await self._plain(number * 8 + n)
            await self._compacted(number * 8 + n)
        for n in range(3):
            await self._transaction(number * 3 + n)

    async def finish(self) -> None:
        """What is done once, between the writes."""
        call, node = self.call, self.call.node
        build = call.request(DELETE_RECORDS, 2)
        partition = build.DeleteRecordsPartition(partition_index=0, offset=STARTS_AT)
        topic = build.DeleteRecordsTopic(name="plain", partitions=(partition,))
        answer = await call.ask(build.DeleteRecordsRequest(topics=(topic,), timeout=30_000))
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none
        await node.log_maintenance.compact(node.partitions.find("compacted", 0))
        build = call.request(OFFSET_COMMIT, 7)
        committed = tuple(
            build.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=7 + index, committed_metadata="here"
            )
            for index in range(2)
        )
        named = build.OffsetCommitRequestTopic(name="plain", partitions=committed)
        answer = await call.ask(
            build.OffsetCommitRequest(group_id=GROUP, member_id="", topics=(named,))
        )
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none

    async def _producer(self, transactional_id: str | None) -> tuple[int, int]:
        build = self.call.request(INIT_PRODUCER_ID, 4)
        answer = await self.call.ask(
            build.InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout=600_000,
                producer_id=-1,
                producer_epoch=-1,
            )
        )
        assert answer.error_code is ErrorCode.none
        return answer.producer_id, answer.producer_epoch

    async def _plain(self, number: int) -> None:
        values = [b"%d-%d " % (number, n) + b"x" * 60 for n in range(3)]
        time_ms = FIRST_MS + number * 1_000
        for index, count in ((0, 3), (1, 2)):
            sequence = self._sequence(f"plain-{index}", count)
            batch = self.call.batch(*values[:count], time_ms=time_ms + index, **sequence)
            await self._produce("plain", batch, index=index)

    async def _compacted(self, number: int) -> None:
        records = [
            Record(0, FIRST_MS + number, b"k%d" % (n % 3), b"%d " % number + b"z" * 50)
            for n in range(3)
        ]
        await self._produce("compacted", build_batch(records))

    async def _transaction(self, number: int) -> None:
        producer_id, epoch = self._transactional
        for n in range(2):
            batch = self.call.batch(
                b"%d.%d " % (number, n) + b"y" * 300,
                time_ms=FIRST_MS + number * 1_000,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self._next("transactions", 1),
                is_transactional=True,
            )
            await self._produce(
                "transactions", batch, version=12, transactional_id=TRANSACTIONAL_ID
            )
        build = self.call.request(END_TXN, 5)
        answer = await self.call.ask(
            build.EndTxnRequest(
                transactional_id=TRANSACTIONAL_ID,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=number % 2 == 0,
            )
        )
        assert answer.error_code is ErrorCode.none
        self._transactional = answer.producer_id, answer.producer_epoch
        self._sequences.pop("transactions")

    def _sequence(self, name: str, count: int) -> dict[str, int]:
        producer_id, epoch = self._idempotent
        base = self._next(name, count)
        return {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": base}

    def _next(self, name: str, count: int) -> int:
        sequence = self._sequences.get(name, 0)
        self._sequences[name] = sequence + count
        return sequence

    async def _produce(self, topic: str, batch: bytes, **how: Any) -> None:
        answer = await self.call.produce(topic, batch, **how)
        assert answer.error_code is ErrorCode.none, answer
