import asyncio
import errno
import threading
from typing import Any

import pytest

from ottla.controller.deletion import TopicToDelete
from ottla.log import file_range, page_cache
from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ErrorCode
from ottla.records.header import iterate_headers
from ottla.replica import read_turns
from ottla.replica.partition_reader import PartitionReader

KEY = 1
LIST_OFFSETS = 2


def request(node_call: Any, offset: int = 0, version: int = 12, **changes: Any) -> Any:
    build = node_call.request(KEY, version)
    of_partition = {
        name: changes.pop(name)
        for name in ("partition_max_bytes", "current_leader_epoch", "last_fetched_epoch", "index")
        if name in changes
    }
    index = of_partition.pop("index", 0)
    partition = build.FetchPartition(
        partition=index,
        fetch_offset=offset,
        **{"partition_max_bytes": 1 << 20, "current_leader_epoch": -1, **of_partition},
    )
    topic = changes.pop("topic", "t")
    named = {"topic_id": node_call.topic_id(topic)} if version >= 13 else {"topic": topic}
    topics = (build.FetchTopic(**named, partitions=(partition,)),)
    given = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **changes}
    return build.FetchRequest(topics=topics, **given)


async def fetch(node_call: Any, *arguments: Any, **changes: Any) -> Any:
    answer = await node_call.ask(request(node_call, *arguments, **changes))
    return answer.responses[0].partitions[0]


def offsets(partition: Any) -> list[int]:
    return [header.base_offset for header in iterate_headers(partition.records or b"")]


@pytest.mark.parametrize("version", range(4, 19))
async def test_every_version_reads(node_call: Any, version: int) -> None:
    for value in (b"a", b"b", b"c"):
        await node_call.produce("t", node_call.batch(value, value))
    found = await fetch(node_call, 2, version)
    assert (found.error_code, found.high_watermark) == (ErrorCode.none, 6)
    assert found.last_stable_offset == 6
    assert offsets(found) == [2, 4]


async def test_the_whole_batch_with_the_offset_is_returned(node_call: Any) -> None:
    await node_call.produce("t", node_call.batch(b"a", b"b", b"c"))
    assert offsets(await fetch(node_call, 2)) == [0]


async def test_limits_do_not_apply_to_the_first_batch(node_call: Any) -> None:
    for _ in range(3):
        await node_call.produce("t", node_call.batch(bytes(1000)))
    assert offsets(await fetch(node_call, 0, partition_max_bytes=1)) == [0]
    assert offsets(await fetch(node_call, 0, max_bytes=1)) == [0]
    assert offsets(await fetch(node_call, 0, partition_max_bytes=2500)) == [0, 1]


async def test_a_response_is_bounded_whatever_the_client_allows(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.api.fetch_reads.MAX_RESPONSE_BYTES", 2_500)
    for _ in range(5):
        await node_call.produce("t", node_call.batch(bytes(1000)))
    found = await fetch(node_call, max_bytes=2**31 - 1, min_bytes=1 << 30, max_wait=60_000)
    assert offsets(found) == [0, 1]


async def test_the_end_and_offsets_out_of_range(node_call: Any) -> None:
    await node_call.produce("t", node_call.batch(b"a"))
    at_end = await fetch(node_call, 1)
    assert (at_end.error_code, offsets(at_end)) == (ErrorCode.none, [])
    for offset in (-1, 2):
        found = await fetch(node_call, offset)
        assert found.error_code is ErrorCode.offset_out_of_range


async def test_unknown_topics_partitions_and_epochs(node_call: Any) -> None:
    for changes, code in (
        ({"topic": "none"}, ErrorCode.unknown_topic_or_partition),
        ({"topic": "none", "version": 13}, ErrorCode.unknown_topic_id),
        ({"index": 5}, ErrorCode.unknown_topic_or_partition),
        ({"current_leader_epoch": 99}, ErrorCode.unknown_leader_epoch),
    ):
        assert (await fetch(node_call, **changes)).error_code is code, changes


async def test_waits_for_bytes_and_is_woken_by_an_append(node_call: Any) -> None:
    asked = asyncio.create_task(fetch(node_call, 0, max_wait=60_000))
    await asyncio.sleep(0.01)
    assert not asked.done()
    await node_call.produce("t", node_call.batch(b"a"))
    assert offsets(await asyncio.wait_for(asked, 30)) == [0]


async def test_waits_for_enough_bytes_or_the_timeout(node_call: Any) -> None:
    asked = asyncio.create_task(fetch(node_call, 0, max_wait=60_000, min_bytes=1_000))
    await node_call.produce("t", node_call.batch(b"a"))
    await asyncio.sleep(0.01)
    assert not asked.done()
    await node_call.produce("t", node_call.batch(bytes(2_000)))
    assert offsets(await asyncio.wait_for(asked, 30)) == [0, 1]
    short = await fetch(node_call, 0, max_wait=20, min_bytes=100_000)
    assert offsets(short) == [0, 1]


async def test_ends_early_when_a_request_of_another_type_is_behind_it(node_call: Any) -> None:
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "", 0)
    behind: list[bytes] = []
    session.queued = behind
    patient = request(node_call, 0, max_wait=60_000)
    for first in (KEY, LIST_OFFSETS):
        asked = asyncio.create_task(node_call.ask(patient, session=session))
        await asyncio.sleep(0.01)
        behind.append(first.to_bytes(2, "big"))
        assert session.arrived is not None
        session.arrived()
        await asyncio.sleep(0.01)
        # A fetch behind it changes nothing.
        assert asked.done() is (first == LIST_OFFSETS)
        if first == KEY:
            asked.cancel()
            await asyncio.wait([asked])
        behind.clear()
        assert session.arrived is None
    assert not offsets((await asked).responses[0].partitions[0])
    behind.append(LIST_OFFSETS.to_bytes(2, "big"))
    answer = await asyncio.wait_for(node_call.ask(patient, session=session), 30)
    assert not offsets(answer.responses[0].partitions[0])


async def test_a_session_returns_only_changes(node_call: Any) -> None:
    await node_call.produce("t", node_call.batch(b"a"))
    opened = await node_call.ask(request(node_call, 0, session_id=0, session_epoch=0))
    assert opened.session_id > 0
    build = node_call.request(KEY, 12)
    more = {"session_id": opened.session_id, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20}

    async def next_of(epoch: int, **changes: Any) -> Any:
        return await node_call.ask(
            build.FetchRequest(session_epoch=epoch, **{"topics": (), **more, **changes})
        )

    moved = request(node_call, 1).topics
    assert (await next_of(1, topics=moved)).responses == ()
    await node_call.produce("t", node_call.batch(b"b"))
    answer = await next_of(2)
    assert offsets(answer.responses[0].partitions[0]) == [1]
    assert (await next_of(2)).error_code is ErrorCode.invalid_fetch_session_epoch
    unknown = await next_of(1, session_id=opened.session_id + 1)
    assert unknown.error_code is ErrorCode.fetch_session_id_not_found


async def test_a_waiting_consumer_whose_slot_a_follower_takes(start_node: Any) -> None:
    node_call = await start_node(max_incremental_fetch_session_cache_slots="1")
    await node_call.create("t")
    await node_call.appear(2)
    await node_call.place("t", (1, 2))
    first = await node_call.ask(request(node_call, session_epoch=0))
    assert first.session_id
    waiting = {"session_id": first.session_id, "session_epoch": 1, "max_wait": 600_000}
    consumer = asyncio.create_task(node_call.ask(request(node_call, **waiting)))
    await asyncio.sleep(0.01)
    assert not consumer.done()
    follower = await node_call.ask(request(node_call, replica_id=2, session_epoch=0))
    assert (follower.error_code, bool(follower.session_id)) == (ErrorCode.none, True)
    assert (await asyncio.wait_for(consumer, 60)).error_code is ErrorCode.none
    again = await node_call.ask(request(node_call, **(waiting | {"session_epoch": 2})))
    assert again.error_code is ErrorCode.fetch_session_id_not_found
    again = await node_call.ask(request(node_call, session_epoch=0))
    assert (again.error_code, again.session_id) == (ErrorCode.none, 0)


async def test_a_deleted_topic_wakes_waiters(node_call: Any) -> None:
    asked = asyncio.create_task(fetch(node_call, 0, max_wait=60_000))
    await asyncio.sleep(0.01)
    build = node_call.request(20, 6)
    topics = (build.DeleteTopicState(name="t"),)
    await node_call.ask(build.DeleteTopicsRequest(topics=topics, timeout=1000))
    found = await asyncio.wait_for(asked, 30)
    assert found.error_code is ErrorCode.unknown_topic_or_partition


class ColdDisk:
    """Nothing is in the page cache, and a read from the disk waits for `release`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        self._gate = threading.Semaphore(0)
        read_fully = page_cache.read_fully

        def wait(fd: int, buffer: memoryview, position: int) -> int:
            self.reads += 1
            assert self._gate.acquire(timeout=60)
            return read_fully(fd, buffer, position)

        monkeypatch.setattr(file_range, "read_cached", lambda *_: 0)
        monkeypatch.setattr(file_range, "read_fully", wait)
        self.release = self._gate.release

    async def reading(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.reads < count:
                await asyncio.sleep(0.005)


async def test_other_requests_are_served_while_cold_data_is_read(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.produce("t", node_call.batch(b"old"))
    disk = ColdDisk(monkeypatch)
    waiting = asyncio.create_task(fetch(node_call, 0))
    await disk.reading(1)
    assert (await node_call.produce("t", node_call.batch(b"new"))).base_offset == 1
    assert not waiting.done()
    disk.release()
    found = await waiting
    assert (offsets(found), found.high_watermark) == ([0], 1)


async def test_data_truncated_during_the_read_is_not_sent(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That position of the file may hold other records by then."""
    await node_call.create("u", 2)
    for index in (0, 1):
        await node_call.produce("u", node_call.batch(b"a"), index=index)
    disk = ColdDisk(monkeypatch)
    waiting = [asyncio.create_task(fetch(node_call, 0, topic="u", index=n)) for n in (0, 1)]
    await disk.reading(2)
    node_call.node.partitions.find("u", 1).truncate_to(0, 0)
    for _ in waiting:
        disk.release()
    whole, cut = await asyncio.gather(*waiting)
    assert offsets(whole) == [0]
    assert (cut.error_code, cut.records) == (ErrorCode.not_leader_or_follower, b"")


async def test_large_answers_take_turns(node_call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is truncated before their turn is not sent."""
    monkeypatch.setattr(read_turns, "MIN_BYTES", 0)
    monkeypatch.setattr(read_turns, "MAX_BYTES", 0)
    await node_call.create("u", 3)
    for index in range(3):
        await node_call.produce("u", node_call.batch(b"a"), index=index)
    waiting = [asyncio.create_task(fetch(node_call, 0, topic="u", index=n)) for n in range(3)]
    await asyncio.sleep(0)
    node_call.node.partitions.find("u", 2).truncate_to(0, 0)
    *whole, cut = await asyncio.gather(*waiting)
    assert [offsets(each) for each in whole] == [[0], [0]]
    assert (cut.error_code, cut.records) == (ErrorCode.not_leader_or_follower, b"")


@pytest.mark.parametrize("reads_at", ["read_cached", "read_fully"])
async def test_a_failed_disk_read_is_an_error(
    node_call: Any, monkeypatch: pytest.MonkeyPatch, reads_at: str
) -> None:
    await node_call.produce("t", node_call.batch(b"a"))

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(file_range, reads_at, fail)
    if reads_at == "read_fully":
        monkeypatch.setattr(file_range, "read_cached", lambda *_: 0)
    found = await fetch(node_call, 0, max_wait=0)
    assert (found.error_code, found.high_watermark) == (ErrorCode.kafka_storage_error, -1)


async def test_a_session_reads_only_changed_partitions(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await node_call.ask(request(node_call, 0, session_id=0, session_epoch=0, max_wait=0))
    reads: list[int] = []
    read = PartitionReader.read

    def counted(self: PartitionReader, offset: int, **named: Any) -> Any:
        reads.append(offset)
        return read(self, offset, **named)

    monkeypatch.setattr(PartitionReader, "read", counted)

    async def next_of(epoch: int, **changes: Any) -> Any:
        named = {"topics": (), "session_id": opened.session_id, "session_epoch": epoch, **changes}
        return await node_call.ask(node_call.request(KEY, 12).FetchRequest(**named))

    more = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    assert (await next_of(1, **more)).responses == ()
    assert reads == []
    await node_call.produce("t", node_call.batch(b"a"))
    assert offsets((await next_of(2, **more)).responses[0].partitions[0]) == [0]
    assert offsets((await next_of(3, **more)).responses[0].partitions[0]) == [0], "not taken"
    assert reads == [0, 0]
    committed = await next_of(
        4, isolation_level=1, **{**more, "topics": request(node_call, 1).topics}
    )
    assert committed.responses == ()
    assert (await next_of(5, isolation_level=0, **more)).responses == ()
    assert reads == [0, 0, 1, 1], "another isolation level finds other things"


async def test_deleted_records_wake_a_waiting_follower(
    node_call: Any,
) -> None:
    """DeleteRecords waits for the follower, and would wait as long as its fetch."""
    await node_call.appear(7)
    await node_call.place("t", (node_call.node.config.id, 7))
    for _ in range(3):
        await node_call.produce("t", node_call.batch(b"v"), acks=1)
    state = node_call.request(KEY, 17).ReplicaState(replica_id=7, replica_epoch=1)
    named = {"version": 17, "replica_state": state}
    opened = await node_call.ask(request(node_call, 3, session_id=0, session_epoch=0, **named))
    follow = {**named, "session_id": opened.session_id, "max_wait": 60_000}
    asked = asyncio.create_task(node_call.ask(request(node_call, 3, session_epoch=1, **follow)))
    await asyncio.sleep(0.01)
    assert not asked.done()
    node_call.node.partitions.find("t", 0).delete_before(2)
    (topic,) = (await asyncio.wait_for(asked, 30)).responses
    assert topic.partitions[0].log_start_offset == 2
    again = asyncio.create_task(node_call.ask(request(node_call, 3, session_epoch=2, **follow)))
    await asyncio.sleep(0.01)
    assert not again.done(), "it was told, and has nothing more to hear"
    again.cancel()


async def test_a_session_remembers_the_name_of_a_deleted_topic(node_call: Any) -> None:
    await node_call.create("gone")
    opened = await node_call.ask(
        request(node_call, 0, 13, topic="gone", session_id=0, session_epoch=0)
    )
    build = node_call.request(KEY, 13)

    async def next_code(epoch: int) -> ErrorCode:
        named = {"topics": (), "session_id": opened.session_id, "session_epoch": epoch}
        answer = await node_call.ask(
            build.FetchRequest(max_wait=0, min_bytes=1, max_bytes=1 << 20, **named)
        )
        code: ErrorCode = answer.responses[0].partitions[0].error_code
        return code

    await node_call.node.controller.delete_topics([TopicToDelete("gone")])
    assert await next_code(1) is ErrorCode.unknown_topic_or_partition
    await node_call.create("gone")
    assert await next_code(2) is ErrorCode.inconsistent_topic_id


async def test_an_offset_is_looked_up_in_a_thread_if_the_index_is_cold(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("u", segment_bytes="1048576")
    for _ in range(8):
        await node_call.produce("u", node_call.batch(bytes(400_000)))
    assert len(node_call.node.partitions.find("u", 0).log.segments) > 2
    for module in (page_cache, file_range):
        monkeypatch.setattr(module, "read_cached", lambda *_: 0)
    works: list[Any] = []
    run = node_call.node.disk_reads.run

    async def counted(work: Any) -> Any:
        works.append(work)
        return await run(work)

    monkeypatch.setattr(node_call.node.disk_reads, "run", counted)
    found = await fetch(node_call, 1, topic="u")
    assert offsets(found) == [1]
    assert len(works) == 2, "the look-up, and the data"


def transact(
    node_call: Any, producer_id: int, *values: bytes, sequence: int = 0, time_ms: int = 1_000
) -> None:
    """A transaction's batch, as its partition gets it once it is verified."""
    partition = node_call.node.partitions.get("t", 0)
    batch = node_call.batch(
        *values,
        time_ms=time_ms,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    guard = partition.appends.begin_verification(producer_id, 0, sequence, version_2=False)
    partition.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)


def end(node_call: Any, producer_id: int, *, is_commit: bool) -> None:
    node_call.node.partitions.get("t", 0).appends.append_marker(
        producer_id, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=0
    )


@pytest.mark.parametrize("version", [4, 11, 12, 17])
async def test_read_committed_ends_at_the_last_stable_offset(node_call: Any, version: int) -> None:
    await node_call.produce("t", node_call.batch(b"a"))
    transact(node_call, 7, b"b", b"c")
    await node_call.produce("t", node_call.batch(b"d"))
    committed = await fetch(node_call, 0, version, isolation_level=1)
    assert (committed.high_watermark, committed.last_stable_offset) == (4, 1)
    assert offsets(committed) == [0]
    assert committed.aborted_transactions == ()
    every = await fetch(node_call, 0, version)
    assert every.last_stable_offset == 1
    assert offsets(every) == [0, 1, 3], "trap 7: read_uncommitted sees them all"
    assert every.aborted_transactions is None


async def test_read_committed_names_the_aborted_transactions(node_call: Any) -> None:
    now_ms = node_call.node.clock.now_ms()  # as the markers': else the segment rolls
    for producer_id in (8, 7):
        transact(node_call, producer_id, b"b", b"c", time_ms=now_ms)
    for producer_id in (7, 8):
        end(node_call, producer_id, is_commit=False)
    transact(node_call, 9, b"d", time_ms=now_ms)
    end(node_call, 9, is_commit=True)
    found = await fetch(node_call, 0, isolation_level=1)
    listed = [(each.producer_id, each.first_offset) for each in found.aborted_transactions]
    assert listed == [(7, 2), (8, 0)], "in the order of their markers"
    assert offsets(found) == [0, 2, 4, 5, 6, 7]
    assert (await fetch(node_call, 6, isolation_level=1)).aborted_transactions == ()


async def test_a_waiting_read_committed_fetch_counts_stable_bytes(node_call: Any) -> None:
    asked = asyncio.create_task(fetch(node_call, 0, max_wait=60_000, isolation_level=1))
    transact(node_call, 7, bytes(500))
    await node_call.produce("t", node_call.batch(bytes(500)))
    await asyncio.sleep(0.01)
    assert not asked.done(), "everything is behind the open transaction"
    end(node_call, 7, is_commit=True)
    assert offsets(await asyncio.wait_for(asked, 30))[:2] == [0, 1]


async def test_a_session_brings_aborted_transactions_too(node_call: Any) -> None:
    opened = await node_call.ask(
        request(node_call, 0, session_id=0, session_epoch=0, isolation_level=1)
    )
    transact(node_call, 7, b"a")
    end(node_call, 7, is_commit=False)
    build = node_call.request(KEY, 12)
    again = build.FetchRequest(
        topics=(),
        session_id=opened.session_id,
        session_epoch=1,
        isolation_level=1,
        max_wait=0,
        min_bytes=1,
        max_bytes=1 << 20,
    )
    (found,) = (await node_call.ask(again)).responses[0].partitions
    assert [each.first_offset for each in found.aborted_transactions] == [0]


async def test_cold_transaction_indexes_are_read_in_a_thread(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact(node_call, 7, b"a")
    end(node_call, 7, is_commit=False)
    node_call.node.partitions.get("t", 0).log.active.store_transaction_index()

    def uncached(*_: Any) -> bytes:
        raise page_cache.NotCachedError

    monkeypatch.setattr("ottla.log.aborted_transactions.pread_cached", uncached)
    found = await fetch(node_call, 0, isolation_level=1)
    assert [each.producer_id for each in found.aborted_transactions] == [7]
