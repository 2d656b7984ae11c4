"""Compacted topics of a running node: cleaner passes, and changes of a log during one."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.controller.deletion import TopicToDelete
from ottla.log.compaction import Compaction
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.storage.log_cleaner import LogCleaner

TOPIC = "compact"


class Bench:
    """A compacted topic on a node whose own cleaner is off."""

    def __init__(self, node_call: Any) -> None:
        self.node = node_call.node
        self.cleaner = LogCleaner(
            self.node.store,
            self.node.partitions,
            self.node.clock,
            self.node.storage_failure,
            self.node.log_maintenance.remove_later,
        )
        self.node_call = node_call

    @property
    def log(self) -> Any:
        return self.node.partitions.find(TOPIC, 0).log

    @property
    def clean_offset(self) -> int | None:
        found: int | None = self.node.store.cleaner_offsets.get((TOPIC, 0))
        return found

    async def write(self, *keys: bytes) -> None:
        """Writes one batch, and so one segment, for each key."""
        for key in keys:
            batch = build_batch([Record(0, 1_000, key, bytes(600))])
            answer = await self.node_call.produce(TOPIC, batch, acks=1)
            assert answer.error_code is ErrorCode.none

    def batches(self, offset: int = 0) -> list[bytes]:
        """The batches from the one that contains `offset` on."""
        found: list[bytes] = []
        while offset < self.log.end_offset:
            data = bytes(self.log.read(offset, max_bytes=1 << 20).read())
            for header in iterate_headers(data):
                found.append(data[: header.size_bytes])
                data = data[header.size_bytes :]
                offset = header.next_offset
        return found

    def keys(self) -> list[tuple[int, bytes | None]]:
        return [
            (each.offset, each.key) for batch in self.batches() for each in iterate_records(batch)
        ]


@pytest.fixture
async def bench(start_node: Any) -> Bench:
    node_call = await start_node(log_cleaner_enable="false")
    await node_call.create(
        TOPIC,
        cleanup_policy="compact",
        internal_segment_bytes="1000",
        min_cleanable_dirty_ratio="0.01",
    )
    await node_call.create("t")
    return Bench(node_call)


async def test_the_last_record_of_each_key_remains(bench: Bench) -> None:
    await bench.write(b"a", b"b", b"a", b"a", b"b", b"c")
    await bench.cleaner.clean()
    assert bench.keys() == [(3, b"a"), (4, b"b"), (5, b"c")]
    assert bench.clean_offset == 5
    await bench.write(b"c", b"b", b"d")
    await bench.cleaner.clean()
    assert bench.keys() == [(3, b"a"), (6, b"c"), (7, b"b"), (8, b"d")]
    assert bench.clean_offset == 8


async def test_a_clean_log_is_not_cleaned_again(bench: Bench) -> None:
    await bench.write(b"a", b"a", b"b")
    await bench.cleaner.clean()
    segments = list(bench.log.segments)
    await bench.cleaner.clean()
    assert bench.log.segments == segments


async def test_one_log_is_compacted_whatever_its_dirty_ratio(bench: Bench) -> None:
    await bench.write(b"a", b"b", b"a", b"c")
    await bench.cleaner.clean()
    await bench.write(b"c", b"d")
    bench.log.config = replace(bench.log.config, min_cleanable_dirty_ratio=1.0)
    await bench.cleaner.clean()
    assert bench.keys() == [(1, b"b"), (2, b"a"), (3, b"c"), (4, b"c"), (5, b"d")]
    partition = bench.node.partitions.find(TOPIC, 0)
    await bench.cleaner.compact(partition, only_if_due=False)
    assert bench.keys() == [(1, b"b"), (2, b"a"), (4, b"c"), (5, b"d")]


async def test_only_committed_records_are_cleaned(bench: Bench) -> None:
    node_call = bench.node_call
    await bench.write(b"a", b"a")
    await node_call.appear(7)
    await node_call.place(TOPIC, (node_call.node.config.id, 7))
    await bench.write(b"a", b"a", b"b")
    await bench.cleaner.clean()
    assert bench.keys() == [(1, b"a"), (2, b"a"), (3, b"a"), (4, b"b")]
    assert bench.clean_offset == 2


async def while_cleaning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]
) -> None:
    """One pass that changes the log after the cleaned segments are written."""
    run = Compaction.run

    def run_and_then(self: Compaction) -> None:
        run(self)
        happens()

    with monkeypatch.context() as patch:
        patch.setattr(Compaction, "run", run_and_then)
        await bench.cleaner.clean()


def no_leftovers(folder: str) -> bool:
    return not [name for name in os.listdir(folder) if name.endswith((".cleaned", ".swap"))]


async def test_a_topic_that_is_deleted_meanwhile_stays_deleted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.write(b"a", b"a", b"b")
    partition = bench.node.partitions.find(TOPIC, 0)
    folder = partition.log.folder
    await while_cleaning(bench, monkeypatch, lambda: bench.node.partitions.remove(partition))
    assert (bench.clean_offset, no_leftovers(folder)) == (None, True)
    assert partition.log.end_offset == 3


async def test_a_log_that_is_truncated_meanwhile_keeps_its_records(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the same number of bytes has replaced those that were truncated."""
    await bench.write(b"a", b"a", b"b", b"c")
    log = bench.log
    written = bench.batches(2)

    def cut_and_copied() -> None:
        truncate_to(log, 2, now_ms=5)
        bench.node.store.truncated(TOPIC, 0, 2)
        for batch in written:
            log.append_as_follower(batch, list(iterate_headers(batch)), now_ms=5)

    await while_cleaning(bench, monkeypatch, cut_and_copied)
    assert bench.keys() == [(0, b"a"), (1, b"a"), (2, b"b"), (3, b"c")]
    assert (bench.clean_offset, no_leftovers(log.folder)) == (None, True)
    await bench.cleaner.clean()
    assert bench.keys() == [(1, b"a"), (2, b"b"), (3, b"c")]


async def test_records_after_a_truncation_are_cleaned_again(bench: Bench) -> None:
    await bench.write(b"a", b"b", b"c", b"d")
    await bench.cleaner.clean()
    assert bench.clean_offset == 3
    truncate_to(bench.log, 1, now_ms=5)
    bench.node.store.truncated(TOPIC, 0, 1)
    await bench.write(b"b", b"b", b"b", b"d")
    await bench.cleaner.clean()
    assert bench.keys() == [(0, b"a"), (3, b"b"), (4, b"d")]


@pytest.mark.parametrize(
    ("code", "is_reported"),
    [(ErrorCode.kafka_storage_error, True), (ErrorCode.corrupt_message, False)],
)
async def test_a_log_that_cannot_be_compacted_does_not_stop_the_pass(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, is_reported: bool
) -> None:
    """A corrupt batch is not a disk failure: the broker keeps running."""
    await bench.write(b"a", b"a", b"b")
    own, other = bench.node.config.id, 7
    await bench.node_call.appear(other)
    await bench.node_call.place(TOPIC, (own, other))

    def fails(self: Compaction) -> None:
        raise ApiError(code, "cannot compact it")

    monkeypatch.setattr(Compaction, "run", fails)
    await bench.cleaner.clean()
    assert (bench.node.storage_failure.reason is not None) == is_reported
    assert bench.log.end_offset == 3


@pytest.mark.parametrize(
    ("code", "tries"), [(ErrorCode.kafka_storage_error, 3), (ErrorCode.corrupt_message, 1)]
)
async def test_a_log_with_a_corrupt_record_is_not_tried_again(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: ErrorCode,
    tries: int,
) -> None:
    """A disk may have space again; a corrupt record stays. Only a command tries that again."""
    await bench.write(b"a", b"a", b"b")
    tried = []

    def fails(self: Compaction) -> None:
        tried.append(self)
        raise ApiError(code, "cannot compact it")

    with monkeypatch.context() as patch:
        patch.setattr(Compaction, "run", fails)
        for _ in range(3):
            await bench.cleaner.clean()
    assert len(tried) == caplog.text.count(f"cannot compact {TOPIC}-0") == tries
    partition = bench.node.partitions.find(TOPIC, 0)
    await bench.cleaner.compact(partition, only_if_due=False)
    assert bench.keys() == [(1, b"a"), (2, b"b")]
    await bench.write(b"b", b"c")
    await bench.cleaner.clean()
    assert bench.keys() == [(1, b"a"), (3, b"b"), (4, b"c")]


async def test_a_new_topic_under_the_name_is_cleaned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.write(b"a", b"a", b"b")

    def fails(self: Compaction) -> None:
        raise ApiError(ErrorCode.corrupt_message, "cannot compact it")

    with monkeypatch.context() as patch:
        patch.setattr(Compaction, "run", fails)
        await bench.cleaner.clean()
    await bench.node.controller.delete_topics([TopicToDelete(TOPIC)])
    await bench.cleaner.clean()
    await bench.node_call.create(
        TOPIC,
        cleanup_policy="compact",
        internal_segment_bytes="1000",
        min_cleanable_dirty_ratio="0.01",
    )
    await bench.write(b"a", b"a", b"b")
    await bench.cleaner.clean()
    assert bench.keys() == [(1, b"a"), (2, b"b")]


async def test_a_log_is_due_above_its_dirty_ratio(bench: Bench) -> None:
    """As in LogCleanerManager.grabFilthiestCompactedLog: not at it."""
    await bench.write(b"a", b"b")
    await bench.cleaner.clean()
    assert bench.clean_offset == 1
    await bench.write(b"a")
    for ratio, clean_offset in ((0.5, 1), (0.499, 2)):
        bench.log.config = replace(bench.log.config, min_cleanable_dirty_ratio=ratio)
        await bench.cleaner.clean()
        assert bench.clean_offset == clean_offset


async def test_a_compacted_segment_that_cannot_be_synced_stops_the_broker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.write(b"a", b"a", b"b")
    before = bench.batches()

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        await bench.cleaner.clean()
    assert bench.node.storage_failure.has_lost_sync
    assert bench.clean_offset is None
    assert bench.batches() == before
