"""A shard over a log that is slow, full or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.coordinator.coordinator_log import KeyAndValue, LogRecord
from ottla.coordinator.coordinator_partition import REPLIES_AT_ONCE
from ottla.groups.classic.requests import HeartbeatRequest, LeavingMember
from ottla.groups.settings import GroupSettings
from ottla.log.errors import RebuildingError
from ottla.protocol.errors import ApiError, ErrorCode

OK = ErrorCode.none


async def test_sessions_end_by_the_clock_of_the_loop(bench: Any) -> None:
    groups = bench.coordinator
    asked = await groups.join(bench.joining(session_timeout_ms=500))
    joined = await groups.join(bench.joining(asked.member_id, session_timeout_ms=500))
    request = bench.syncing(joined.generation, asked.member_id)
    assert (await groups.sync(request)).error is OK
    assert await groups.heartbeat(HeartbeatRequest("g", 1, asked.member_id, None)) is OK
    while (await groups.describe("g")).state != "Empty":
        await asyncio.sleep(0.01)
    beat = HeartbeatRequest("g", 1, asked.member_id, None)
    assert await groups.heartbeat(beat) is ErrorCode.unknown_member_id


async def test_nothing_is_said_before_it_is_committed(bench: Any) -> None:
    groups = bench.coordinator
    member = await bench.join_alone()
    log = bench.log_of("g")
    log.hold()
    request = bench.committing(7, generation=1, member_id=member)
    commit = asyncio.create_task(groups.commit(request))
    fetch = asyncio.create_task(groups.fetch("g", (("t", None, (0,)),)))
    await asyncio.sleep(0.02)
    assert not commit.done()
    assert not fetch.done()
    assert bench.commits == []
    log.release()
    assert await commit == [OK]
    assert (await fetch)[0][0].offset == 7
    assert len(bench.commits) == 1


async def test_replies_that_wait_come_in_the_order_of_their_steps(bench: Any) -> None:
    groups = bench.coordinator
    member = await bench.join_alone()
    log = bench.log_of("g")
    log.hold()
    order: list[str] = []

    async def note(name: str, awaitable: object) -> None:
        await awaitable  # type: ignore[misc]
        order.append(name)

    leaving = groups.leave("g", (LeavingMember(member, None),))
    tasks = [asyncio.create_task(note("leave", leaving))]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(note("join", groups.join(bench.joining()))))
    await asyncio.sleep(0.02)
    assert order == []
    log.release()
    await asyncio.gather(*tasks)
    assert order == ["leave", "join"]


async def test_the_members_of_a_large_group_are_answered_in_several_turns(bench: Any) -> None:
    groups = bench.coordinator
    asked = [await groups.join(bench.joining()) for _ in range(3 * REPLIES_AT_ONCE)]
    joins = [asyncio.create_task(groups.join(bench.joining(each.member_id))) for each in asked]
    answered, most = 0, 0
    async with asyncio.timeout(20):
        while answered < len(joins):
            await asyncio.sleep(0)
            before, answered = answered, sum(join.done() for join in joins)
            most = max(most, answered - before)
    assert {join.result().generation for join in joins} == {1}
    assert most == REPLIES_AT_ONCE


async def test_a_commit_that_is_not_replicated_in_time_is_an_error(bench: Any) -> None:
    bench.settings = GroupSettings(offset_commit_timeout_ms=20)
    groups = bench.restart()
    bench.log_of("g").hold()
    with pytest.raises(ApiError) as refused:
        await groups.commit(bench.committing(7))
    assert refused.value.code is ErrorCode.coordinator_not_available
    assert (await groups.join(bench.joining())).error is ErrorCode.coordinator_not_available


async def test_each_of_many_waits_has_its_own_deadline(bench: Any) -> None:
    """One after the other they would take 60 s, and the clients give up long before."""
    bench.settings = GroupSettings(offset_commit_timeout_ms=300)
    groups = bench.restart()
    member = await bench.join_alone()
    bench.log_of("g").hold()
    leaving = groups.leave("g", (LeavingMember(member, None),))
    waiting: list[asyncio.Task[Any]] = [asyncio.create_task(leaving)]
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(groups.join(bench.joining())) for _ in range(200)]
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert str(answers[0]) == "coordinator_not_available"
    joined: list[Any] = answers[1:]
    assert {each.error for each in joined} == {ErrorCode.coordinator_not_available}


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.kafka_storage_error, ErrorCode.not_coordinator),
        (ErrorCode.message_too_large, ErrorCode.unknown_server_error),
    ],
)
async def test_a_log_that_takes_nothing_keeps_the_state_as_it_was(
    bench: Any, refusal: ErrorCode, told: ErrorCode
) -> None:
    groups = bench.coordinator
    member = await bench.join_alone()
    log = bench.log_of("g")
    log.refuse = refusal
    with pytest.raises(ApiError) as refused:
        await groups.commit(bench.committing(7, generation=1, member_id=member))
    assert refused.value.code is told
    log.refuse = None
    assert await groups.fetch_all("g") == {}
    assert (await groups.describe("g")).state == "Stable"


async def test_logs_that_take_nothing_are_logged_now_and_then(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk clients repeat their commits many times a second, in all partitions."""
    groups = bench.coordinator
    assert groups.partition_for("g") != groups.partition_for("h")
    for lines in (1, 1, 2):
        for group in ("g", "h"):
            bench.log_of(group).refuse = ErrorCode.kafka_storage_error
            with pytest.raises(ApiError):
                await groups.commit(bench.committing(7, group=group))
        assert caplog.text.count("cannot append 1 records") == lines
        bench.clock.time_ms += 15_000
    assert "(3 more since the last such line)" in caplog.text


async def test_an_assignment_that_cannot_be_stored_begins_a_rebalance(bench: Any) -> None:
    groups = bench.coordinator
    asked = await groups.join(bench.joining())
    await groups.join(bench.joining(asked.member_id))
    bench.log_of("g").refuse = ErrorCode.not_enough_replicas
    answer = await groups.sync(bench.syncing(1, asked.member_id))
    assert answer.error is ErrorCode.coordinator_not_available
    bench.log_of("g").refuse = None
    assert (await groups.join(bench.joining(asked.member_id))).generation == 2


async def test_a_log_that_is_slow_to_read_is_answered_with_loading(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await bench.join_alone()
    monkeypatch.setattr("ottla.coordinator.coordinator_runtime.LOAD_WAIT_S", 0)
    monkeypatch.setattr("ottla.coordinator.loading.RECORDS_BEFORE_YIELD", 1)
    for number in range(20):
        await bench.coordinator.commit(bench.committing(number, generation=1, member_id=member))
    groups = bench.restart()
    answer = await groups.join(bench.joining())
    assert answer.error is ErrorCode.coordinator_load_in_progress
    groups = bench.restart()
    assert await groups.heartbeat(HeartbeatRequest("g", 9, "m", None)) is OK
    monkeypatch.setattr("ottla.coordinator.coordinator_runtime.LOAD_WAIT_S", 20)
    assert (await groups.describe("g")).state == "Stable"


async def test_a_log_that_cannot_be_read_is_tried_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.join_alone()
    log = bench.log_of("g")
    groups = bench.restart()

    def broken() -> Iterator[LogRecord]:
        raise ApiError(ErrorCode.kafka_storage_error, "the disk is gone")

    monkeypatch.setattr(log, "read_all", broken)
    with pytest.raises(ApiError) as refused:
        await groups.describe("g")
    assert refused.value.code is ErrorCode.not_coordinator
    monkeypatch.undo()
    assert (await groups.describe("g")).state == "Stable"


async def test_it_waits_for_an_index_that_is_built_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.join_alone()
    log = bench.log_of("g")
    groups = bench.restart()
    read_all, rebuild = log.read_all, SimpleNamespace(waiters=None, is_over=True)

    def rebuilding() -> Iterator[LogRecord]:
        yield from islice(read_all(), 1)
        monkeypatch.undo()
        raise RebuildingError("x.log", rebuild)

    monkeypatch.setattr(log, "read_all", rebuilding)
    assert (await groups.describe("g")).state == "Stable"


async def test_records_of_others_are_left_alone(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log = bench.log_of("g")
    for key in (None, b"", b"\0\3\0\1g", b"\0\1\0\xff"):
        log.records.append(LogRecord(len(log.records), key, b"?", 1))
    assert await bench.coordinator.commit(bench.committing(7)) == [OK]
    assert "ignored 4 records" in caplog.text


async def test_many_tombstones_are_appended_in_small_batches(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.coordinator.coordinator_partition.MAX_BATCH_RECORDS", 10)
    await bench.coordinator.commit(bench.committing(*range(35)))
    log, sizes = bench.log_of("g"), []
    append = log.append

    def counted(records: Sequence[KeyAndValue], *others: Any) -> int:
        sizes.append(len(records))
        offset: int = append(records, *others)
        return offset

    monkeypatch.setattr(log, "append", counted)
    assert await bench.coordinator.delete_group("g") is OK
    assert sizes == [10, 10, 10, 6]


async def test_a_client_that_goes_while_it_waits_harms_nobody(bench: Any) -> None:
    groups = bench.coordinator
    leader = await bench.join_alone()
    asked = await groups.join(bench.joining())
    gone = asyncio.create_task(groups.join(bench.joining(asked.member_id)))
    await asyncio.sleep(0.01)
    gone.cancel()
    assert (await groups.join(bench.joining(leader))).generation == 2


async def test_a_partition_that_is_loaded_again_decides_nothing_more(bench: Any) -> None:
    """Nor does it confirm what it appended before: another coordinator has read the log since."""
    groups = bench.coordinator
    assert await groups.commit(bench.committing(6)) == [OK]
    index, log = groups.partition_for("g"), bench.log_of("g")
    former, records = bench.runtime._partitions[index], len(log.records)
    log.hold()
    former.decide(lambda shard, step: shard.commit(bench.committing(7), step))
    waiting = asyncio.create_task(former.committed())
    await asyncio.sleep(0)
    bench.runtime.elected(index)
    log.release()
    with pytest.raises(ApiError) as uncommitted:
        await waiting
    with pytest.raises(ApiError) as refused:
        former.decide(lambda shard, step: shard.commit(bench.committing(8), step))
    assert uncommitted.value.code is refused.value.code is ErrorCode.not_coordinator
    assert len(log.records) == records + 1


async def test_records_that_cannot_be_applied_are_loaded_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Our own bug: what memory has and what the log has may differ now."""
    groups = bench.coordinator
    assert await groups.commit(bench.committing(6)) == [OK]

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    shard = bench.runtime._partitions[groups.partition_for("g")].shard
    monkeypatch.setattr(shard, "apply", broken)
    with pytest.raises(RuntimeError):
        await groups.commit(bench.committing(7))
    assert "cannot be applied; loading again" in caplog.text
    assert (await groups.fetch_all("g"))["t"][0].offset == 7
