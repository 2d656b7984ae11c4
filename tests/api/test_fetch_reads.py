"""A fetch of many partitions reads and answers in slices; others change things in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import pytest
from tests.turns import most_calls_at_once

from ottla.api import fetch, fetch_answer, fetch_reads
from ottla.api.fetch_reads import Reads
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.header import iterate_headers
from ottla.replica.read_turns import ReadTurns
from ottla.runtime.slices import SLICE

KEY = 1
MOST_CALLS: Final = 50_000


def request(node_call: Any, *offsets: int, version: int = 12, **changes: Any) -> Any:
    """Of the first partitions of "u", from these offsets."""
    build = node_call.request(KEY, version)
    partitions = tuple(
        build.FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=-1,
        )
        for index, offset in enumerate(offsets)
    )
    topics = (build.FetchTopic(topic="u", partitions=partitions),) if partitions else ()
    given = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **changes}
    return build.FetchRequest(topics=topics, **given)


async def ask(node_call: Any, request: Any) -> Any:
    """The answer of the handler alone: tests of the codec are elsewhere."""
    version = request.__version__
    context = RequestContext(
        broker=node_call.node,
        session=ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092),
        version=version,
        client_id="tests",
        messages=messages_of(KEY, version),
    )
    return await fetch.handle(request, context)


def offsets(answer: Any) -> dict[int, list[int]]:
    return {
        each.partition_index: [header.base_offset for header in iterate_headers(each.records)]
        for topic in answer.responses
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", [12, 13])
async def test_unknown_partitions_do_not_hold_the_loop(node_call: Any, version: int) -> None:
    count = 40_000
    build = node_call.request(KEY, version)
    named = {"topic_id": UUID(int=5)} if version >= 13 else {"topic": "no"}

    def of_many(**session: int) -> Any:
        partitions = tuple(
            build.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
            for index in range(count)
        )
        topics = (build.FetchTopic(**named, partitions=partitions),)
        return build.FetchRequest(
            max_wait=0, min_bytes=0, max_bytes=1, topics=topics, forgotten_topics_data=(), **session
        )

    asked = of_many(session_id=0, session_epoch=0)
    first, most_calls = await most_calls_at_once(ask(node_call, asked))
    assert len(first.responses[0].partitions) == count
    again = of_many(session_id=first.session_id, session_epoch=1)
    second, of_second = await most_calls_at_once(ask(node_call, again))
    assert len(second.responses[0].partitions) == count
    assert node_call.node.fetch_sessions.partition_count == count
    assert max(most_calls, of_second) < MOST_CALLS


async def test_a_session_of_many_partitions_ends_in_slices(node_call: Any) -> None:
    count = 3 * SLICE
    await node_call.create("u", count)
    first = await ask(node_call, request(node_call, *[0] * count, min_bytes=0, session_epoch=0))
    watchers = [node_call.node.partitions.find("u", n).waiters for n in range(count)]
    assert all(map(bool, watchers))
    ended = request(node_call, 0, session_id=first.session_id, min_bytes=0)
    left: list[Any] = []
    answer = asyncio.create_task(ask(node_call, ended))
    while not left or left[-1]:
        await asyncio.sleep(0)
        left.append(sum(bool(node_call.node.partitions.find("u", n).waiters) for n in range(count)))
    assert left[0] == count - SLICE
    assert not (await answer).error_code


@pytest.fixture
async def two(node_call: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The topic "u" of two partitions; every fetch takes the path of many, and pauses."""
    await node_call.create("u", 2)
    monkeypatch.setattr(fetch, "SLICE", 0)
    monkeypatch.setattr(fetch_reads, "SLICE", 0)
    return node_call


Meanwhile = Callable[[], Awaitable[object]]


def in_pause(monkeypatch: pytest.MonkeyPatch, number: int, meanwhile: Meanwhile) -> None:
    """Have this happen in that pause (from 0) of the next fetch."""
    pause = Reads.pause
    pauses = 0

    async def happens(self: Any) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == number + 1:
            await meanwhile()
        await pause(self)

    monkeypatch.setattr(Reads, "pause", happens)


@pytest.mark.parametrize("session_epoch", [-1, 0])
@pytest.mark.parametrize("number", [0, 1])
async def test_an_append_in_a_pause_is_not_missed(
    two: Any, monkeypatch: pytest.MonkeyPatch, number: int, session_epoch: int
) -> None:
    """Else the fetch would sleep for its ten minutes."""
    in_pause(monkeypatch, number, lambda: two.produce("u", two.batch(b"a"), index=1))
    asked = request(two, 0, 0, max_wait=600_000, session_epoch=session_epoch)
    answer = await asyncio.wait_for(ask(two, asked), 60)
    assert offsets(answer) == {0: [], 1: [0]}


async def test_records_truncated_in_a_pause_are_not_sent(
    two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That place of the file may hold other records by then."""
    for index in (0, 1):
        await two.produce("u", two.batch(b"a"), index=index)

    async def truncate() -> None:
        two.node.partitions.find("u", 1).truncate_to(0, 0)

    in_pause(monkeypatch, 1, truncate)  # all is read, and not loaded
    answer = await ask(two, request(two, 0, 0))
    whole, cut = answer.responses[0].partitions
    assert (cut.error_code, cut.records) == (ErrorCode.not_leader_or_follower, b"")
    assert not whole.error_code


async def test_much_data_of_many_partitions_is_loaded_in_turns(
    two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 500 partitions it may be 55 MiB: as much as of a few."""
    sizes: list[int] = []
    wait = ReadTurns.wait

    async def waits(self: ReadTurns, size_bytes: int) -> None:
        sizes.append(size_bytes)
        await wait(self, size_bytes)

    monkeypatch.setattr(ReadTurns, "wait", waits)
    monkeypatch.setattr(fetch_answer, "TURN_BYTES", 1)
    for index in (0, 1):
        await two.produce("u", two.batch(b"a"), index=index)
    answer = await ask(two, request(two, 0, 0))
    assert offsets(answer) == {0: [0], 1: [0]}
    assert len(sizes) == 2
    assert all(sizes)


async def test_a_second_request_of_a_session_waits_for_its_turn(
    two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another connection, while the first one is at work: it would change what the first one
    reads.
    """
    await two.produce("u", two.batch(b"a"))
    opened = await ask(two, request(two, 0, 0, session_epoch=0))
    codes = []

    async def second() -> None:
        asked = request(two, session_id=opened.session_id, session_epoch=2)
        codes.append((await ask(two, asked)).error_code)

    for number in range(3):
        in_pause(monkeypatch, number, second)
    first = request(two, 0, 0, session_id=opened.session_id, session_epoch=1)
    assert offsets(await ask(two, first)) == {0: [0]}
    assert set(codes) == {ErrorCode.invalid_fetch_session_epoch}
    monkeypatch.undo()
    again = await ask(two, request(two, session_id=opened.session_id, session_epoch=2))
    assert offsets(again) == {0: [0]}


async def test_a_request_that_slept_does_not_go_on_after_another_of_its_session(
    node_call: Any,
) -> None:
    await node_call.create("u", 2)
    opened = await ask(node_call, request(node_call, 0, 0, session_epoch=0))
    more = {"session_id": opened.session_id, "max_wait": 600_000}
    asleep = asyncio.create_task(ask(node_call, request(node_call, session_epoch=1, **more)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(ask(node_call, request(node_call, session_epoch=2, **more)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await node_call.produce("u", node_call.batch(b"a"), index=1)
    refused, answered = await asyncio.wait_for(asyncio.gather(asleep, second), 60)
    assert (refused.error_code, refused.responses) == (ErrorCode.invalid_fetch_session_epoch, ())
    assert offsets(answered) == {1: [0]}


async def test_a_client_that_leaves_in_a_pause_leaves_no_half_session(two: Any) -> None:
    opened = await ask(two, request(two, 0, 0, session_epoch=0))
    asked = request(two, 5, 5, session_id=opened.session_id, session_epoch=1)
    task = asyncio.create_task(ask(two, asked))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert len(two.node.fetch_sessions) == 0
    assert two.node.fetch_sessions.partition_count == 0
    answer = await ask(two, request(two, session_id=opened.session_id, session_epoch=2))
    assert answer.error_code is ErrorCode.fetch_session_id_not_found
