"""A call that meets an index that is being built again waits for it, and the event loop goes on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.turns import turns_of_others

from ottla.api.journey import handle_json
from ottla.log import scan, transaction_rebuild
from ottla.log.errors import RebuildingError
from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers, read_header
from ottla.records.record import Record
from ottla.runtime.waiting import wake
from ottla.storage.after_rebuild import MAX_REBUILDS, after_rebuild

FETCH, LIST_OFFSETS = 1, 2
SEGMENT_BYTES = 1_400_000
VALUE = b"v" * 20_000


class Damaged:
    """The topic u, of two segments, and the node that has started with damaged indexes."""

    def __init__(self, node_call: Any, threads: list[int]) -> None:
        self.node_call = node_call
        self.sound: dict[str, Any] = {}
        """What was answered before the damage."""
        self.node = node_call.node
        self.threads = threads
        """That have read batches for an index."""

    @property
    def partition(self) -> Any:
        return self.node.partitions.find("u", 0)

    @property
    def log(self) -> Any:
        return self.partition.log

    async def fetch(self, offset: int, **given: Any) -> Any:
        build = self.node_call.request(FETCH, 12)
        partition = build.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1, current_leader_epoch=-1
        )
        topics = (build.FetchTopic(topic="u", partitions=(partition,)),)
        asked = build.FetchRequest(
            topics=topics, max_wait=0, min_bytes=1, max_bytes=1, session_epoch=-1, **given
        )
        answer = await self.node_call.ask(asked)
        (found,) = answer.responses[0].partitions
        assert found.error_code is ErrorCode.none
        return found

    async def fetched(self, offset: int) -> list[int]:
        return [each.base_offset for each in iterate_headers((await self.fetch(offset)).records)]

    async def aborted(self, offset: int) -> list[tuple[int, int]]:
        listed = (await self.fetch(offset, isolation_level=1)).aborted_transactions
        return [(each.producer_id, each.first_offset) for each in listed]

    async def all_answers(self) -> dict[str, Any]:
        time_ms = self.log.segments[1].first_timestamp()
        return {
            "first": await self.fetched(5),
            "last": await self.fetched(self.log.end_offset - 5),
            "aborted": await self.aborted(5),
            "time": time_ms,
            "by time": await self.list_offset(time_ms),
            "largest": await self.list_offset(-3),
        }

    async def list_offset(self, timestamp: int) -> tuple[int, int]:
        build = self.node_call.request(LIST_OFFSETS, 11)
        partition = build.ListOffsetsPartition(
            partition_index=0, timestamp=timestamp, current_leader_epoch=-1
        )
        topics = (build.ListOffsetsTopic(name="u", partitions=(partition,)),)
        answer = await self.node_call.ask(build.ListOffsetsRequest(topics=topics, replica_id=-1))
        (found,) = answer.topics[0].partitions
        assert found.error_code is ErrorCode.none
        return found.offset, found.timestamp


def _garbage(path: Path) -> None:
    path.write_bytes(b"\x00\x00\x00\x01\x7f\x7f\x7f\x7f" * (path.stat().st_size // 24 * 3))


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.fixture
async def damage(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Awaitable[Damaged]]]:
    threads: list[int] = []
    portions = scan.in_portions

    def in_portions(*batches: Any) -> Any:
        threads.append(threading.get_ident())
        return portions(*batches)

    async def start(apply: Callable[[Path], None], *suffixes: str, **settings: str) -> Damaged:
        first = await start_node(log_cleaner_enable="false")
        await first.create("u", segment_bytes=str(SEGMENT_BYTES), **settings)
        partition = first.node.partitions.find("u", 0)
        first_ms, number = first.node.clock.now_ms() - 10_000, 0
        while len(partition.log.segments) < 2 or partition.log.active.size_bytes < 1_200_000:
            record = Record(0, first_ms + number, b"k%d" % (number % 9), VALUE)
            batch = build_batch([record], producer_id=7, producer_epoch=0, is_transactional=True)
            partition.appends.append_own(
                batch, [read_header(batch)], first_ms, partition.leadership
            )
            if number % 5 == 0:
                partition.appends.append_marker(
                    7, 0, is_commit=False, coordinator_epoch=0, transaction_version=0
                )
                # Markers have the latest times; the index has an entry only for a later one.
                await asyncio.sleep(0.001)
            number += 1
        partition.appends.append_marker(
            7, 0, is_commit=False, coordinator_epoch=0, transaction_version=0
        )
        folder = Path(partition.log.folder)
        before = Damaged(first, threads)
        sound = await before.all_answers()
        await first.node.close()
        for suffix in suffixes:
            for path in folder.glob(f"*{suffix}"):
                assert path.stat().st_size > 24
                apply(path)
        monkeypatch.setattr(scan, "in_portions", in_portions)
        monkeypatch.setattr(transaction_rebuild, "in_portions", in_portions)
        damaged = Damaged(await start_node(log_cleaner_enable="false"), threads)
        damaged.sound = sound
        return damaged

    yield start
    assert threads
    assert threading.get_ident() not in threads


async def test_fetches_of_all_readers(damage: Any) -> None:
    damaged = await damage(_garbage, ".index", ".timeindex")
    found, turns = await turns_of_others(damaged.fetched(5))
    assert found == damaged.sound["first"]
    assert turns > 2
    assert await damaged.fetched(damaged.log.end_offset - 5) == damaged.sound["last"]
    assert len(damaged.threads) == 2


async def test_fetches_of_committed_records(damage: Any) -> None:
    damaged = await damage(_zeros, ".txnindex")
    for _ in range(2):
        assert await damaged.aborted(5) == damaged.sound["aborted"]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_offsets_by_time(damage: Any, suffix: str) -> None:
    damaged = await damage(_garbage, suffix)
    assert await damaged.list_offset(damaged.sound["time"]) == damaged.sound["by time"]
    assert await damaged.list_offset(-3) == damaged.sound["largest"]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_produced_batches(damage: Any, suffix: str) -> None:
    damaged = await damage(_garbage, suffix)
    end_offset = damaged.log.end_offset
    for number in range(2):
        answer = await damaged.node_call.produce("u", damaged.node_call.batch(b"new"))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, end_offset + number)


async def test_retention_by_time_in_the_next_round(damage: Any, eventually: Any) -> None:
    damaged = await damage(_garbage, ".index", ".timeindex", retention_ms="-1")
    log = damaged.log
    log.config = replace(log.config, retention_ms=1)
    before = log.segments[0]
    await damaged.node.log_maintenance.retain()
    assert log.segments[0] is before
    await eventually(lambda: before.rebuild is None)
    await damaged.node.log_maintenance.retain()
    assert log.segments[0] is not before


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
async def test_compaction(damage: Any, suffix: str) -> None:
    apply = _zeros if suffix == ".txnindex" else _garbage
    damaged = await damage(apply, suffix, cleanup_policy="compact", min_compaction_lag_ms="1")
    before = damaged.log.size_bytes
    await damaged.node.log_maintenance.compact(damaged.partition)
    if not damaged.threads:
        # Only the times and transactions are needed; the next reader needs the rest.
        await damaged.fetch(damaged.log.end_offset - 5)
    assert damaged.log.size_bytes < before


async def test_journeys(damage: Any) -> None:
    damaged = await damage(_garbage, ".index", ".timeindex")
    context: Any = SimpleNamespace(broker=damaged.node)
    said = await handle_json({"journey": 1, "topic": "u", "offset": 5}, context)
    assert said["offset"] == 5
    said = await handle_json({"journey": 1, "topic": "u", "latest": True}, context)
    assert said["offset"] == damaged.log.end_offset - 2  # the last record is a marker


async def test_a_stop_meanwhile(damage: Any, start_node: Any) -> None:
    damaged = await damage(_garbage, ".index", ".timeindex")
    with pytest.raises(RebuildingError):
        damaged.log.read(5, max_bytes=1)
    with pytest.raises(RebuildingError) as raised:
        damaged.log.active.load_ends()
    while not damaged.threads:
        await turns_of_others(damaged.node.log_maintenance.checkpoint())
    await damaged.node.close()
    assert raised.value.rebuild.is_over
    end_offset = damaged.log.end_offset
    again = Damaged(await start_node(), [])
    assert again.log.is_clean
    answer = await again.node_call.produce("u", again.node_call.batch(b"new"))
    assert answer.base_offset == end_offset
    assert not list(Path(again.log.folder).glob("*.rebuilt"))


class Rebuilt:
    """A rebuild that somebody waits for."""

    def __init__(self, is_over: bool) -> None:
        self.waiters: Any = None
        self.is_over = is_over


@pytest.mark.parametrize("failures", [0, 1, MAX_REBUILDS])
async def test_a_call_is_tried_again_after_each_rebuild(failures: int) -> None:
    calls = 0

    async def look() -> int:
        nonlocal calls
        calls += 1
        if calls <= failures:
            raise RebuildingError("x.log", Rebuilt(is_over=True))  # type: ignore[arg-type]
        return calls

    assert await after_rebuild(look) == failures + 1


async def test_a_call_that_meets_rebuilds_for_ever_is_refused() -> None:
    async def look() -> None:
        raise RebuildingError("x.log", Rebuilt(is_over=True))  # type: ignore[arg-type]

    with pytest.raises(RebuildingError) as raised:
        await after_rebuild(look)
    assert raised.value.code is ErrorCode.not_leader_or_follower


async def test_it_waits_until_the_rebuild_is_over(eventually: Any) -> None:
    rebuild = Rebuilt(is_over=False)
    looks: list[bool] = []

    async def look() -> str:
        looks.append(rebuild.is_over)
        if not rebuild.is_over:
            raise RebuildingError("x.log", rebuild)  # type: ignore[arg-type]
        return "found"

    waiting = asyncio.create_task(after_rebuild(look))
    await eventually(lambda: rebuild.waiters)
    assert looks == [False]
    rebuild.is_over = True
    wake(rebuild)
    assert await waiting == "found"
    assert looks == [False, True]
