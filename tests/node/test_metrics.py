import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client.core import Metric

from ottla.coordinator.late_offsets import Late
from ottla.node.loop_watchdog import LoopWatchdog
from ottla.node.metrics import BrokerCollector, serve_metrics
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.stored import ShareKey

HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


async def collect(node_call: Any, watchdog: LoopWatchdog | None = None) -> dict[str, Metric]:
    collector = BrokerCollector(
        node_call.node, watchdog or LoopWatchdog(str), asyncio.get_running_loop()
    )
    return {metric.name: metric for metric in await asyncio.to_thread(collector.collect)}


async def test_the_metrics_match_the_partitions(node_call: Any) -> None:
    await node_call.create("u", 2)
    for index in (0, 1, 1):
        await node_call.produce("u", node_call.batch(b"a", b"b"), index=index)
    found = await collect(node_call)
    (partitions,) = found["ottla_partitions"].samples
    assert partitions.value == 3
    records = {each.labels["topic"]: each.value for each in found["ottla_topic_records_in"].samples}
    assert records == {"t": 0, "u": 6}
    ends = {
        (each.labels["topic"], each.labels["partition"]): each.value
        for each in found["ottla_partition_end_offset"].samples
    }
    assert ends == {("t", "0"): 0, ("u", "0"): 2, ("u", "1"): 4}


async def test_what_groups_lose_soon(start_node: Any) -> None:
    call = await start_node(
        offsets_topic_num_partitions="1", share_coordinator_state_topic_num_partitions="1"
    )
    await call.create("t")
    now_ms = call.node.clock.now_ms()
    time_ms = now_ms - WEEK_MS + HOUR_MS
    await call.produce("t", call.batch(b"a", b"b", b"c", time_ms=time_ms))
    await call.node.topic_creation.ensure_offsets_topic()
    build = call.request(8, 8)
    part = build.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = build.OffsetCommitRequestTopic(name="t", partitions=(part,))
    commit = build.OffsetCommitRequest(group_id="g", topics=(topic,))
    async with asyncio.timeout(60):
        while (await call.ask(commit)).topics[0].partitions[0].error_code is not ErrorCode.none:
            await asyncio.sleep(0.01)  # the coordinator is loading
    await call.node.shares.persister.initialize(ShareKey("workers", call.topic_id("t"), 0), 1, 2)
    found = await collect(call)
    records = {
        (each.labels["group"], each.labels["topic"]): each.value
        for each in found["ottla_group_unread_going"].samples
    }
    assert records == {("g", "t"): 2, ("workers", "t"): 1}
    seconds = [each.value for each in found["ottla_group_unread_going_seconds"].samples]
    assert all(3_500 < each < 3_601 for each in seconds)
    (age,) = found["ottla_group_unread_going_age_seconds"].samples
    assert age.value == 0


async def test_a_state_that_does_not_answer_hides_no_other_group(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await start_node(share_coordinator_state_topic_num_partitions="1")
    await call.create("t")
    await call.produce("t", call.batch(b"a", time_ms=call.node.clock.now_ms() - WEEK_MS + HOUR_MS))
    late = Late("g", "t", 0, 0)

    async def count() -> int:
        return 1

    async def late_ones(ends: Any) -> AsyncIterator[list[Late]]:
        yield [late]

    async def refuse(index: int, decide: Any) -> None:
        raise ApiError(ErrorCode.coordinator_not_available)

    monkeypatch.setattr(call.node.groups.late_offsets, "count", count)
    monkeypatch.setattr(call.node.groups.late_offsets, "late", late_ones)
    await call.node.shares.persister.initialize(ShareKey("workers", call.topic_id("t"), 0), 1, 0)
    monkeypatch.setattr(call.node.shares.runtime, "decide_appended", refuse)
    found = await collect(call)
    told = [each.labels["group"] for each in found["ottla_group_unread_going"].samples]
    assert told == ["g"]
    (age,) = found["ottla_group_unread_going_age_seconds"].samples
    assert age.value == -1, "some groups were not looked at"


async def test_partitions_that_are_too_many_to_look_at(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await start_node()
    long_ago_ms = call.node.clock.now_ms() - WEEK_MS
    for topic in ("t", "u", "v"):
        await call.create(topic)
        await call.produce(topic, call.batch(b"a", time_ms=long_ago_ms))
    monkeypatch.setattr("ottla.node.loss_metrics.MAX_PARTITIONS", 2)
    monkeypatch.setattr("ottla.node.loss_metrics.MAX_LOOKUPS", 1)
    (left_out,) = (await collect(call))["ottla_group_unread_going_left_out"].samples
    assert left_out.value == 2


async def test_dead_letters(node_call: Any) -> None:
    letters = node_call.node.shared_partitions.dead_letters
    letters.written, letters.given_up = 5, 2
    found = await collect(node_call)
    for name, value in (("ottla_dead_letters", 5), ("ottla_dead_letters_given_up", 2)):
        assert [each.value for each in found[name].samples] == [value]


async def test_transactions_that_hold_readers_back(node_call: Any) -> None:
    await node_call.produce("t", node_call.batch(b"a"))
    partition = node_call.node.partitions.get("t", 0)
    now_ms = node_call.node.clock.now_ms()
    for producer_id, age_ms in ((7, 21 * 60_000), (8, 19 * 60_000)):
        guard = partition.appends.begin_verification(producer_id, 0, 0, version_2=False)
        batch = node_call.batch(
            b"a",
            b"b",
            time_ms=now_ms - age_ms,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        partition.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)

    async def values(name: str) -> list[float]:
        return [each.value for each in (await collect(node_call))[name].samples]

    assert await values("ottla_partition_last_stable_lag") == [4]
    hanging = "ottla_partition_hanging_transactions"
    assert await values(hanging) == [1], "15 minutes is the longest timeout, and 5 are for markers"
    for producer_id in (7, 8):
        partition.appends.append_marker(
            producer_id, 0, is_commit=False, coordinator_epoch=0, transaction_version=0
        )
    assert await values("ottla_partition_last_stable_lag") == [0]
    assert await values(hanging) == [0]


async def test_holds_of_the_event_loop_are_counted(node_call: Any) -> None:
    watchdog = LoopWatchdog(str)
    watchdog.holds, watchdog.longest_ms = 3, 1_200
    found = await collect(node_call, watchdog)
    values = [
        found[name].samples[0].value for name in ("ottla_loop_holds", "ottla_loop_longest_hold_ms")
    ]
    assert values == [3, 1_200]


async def test_metrics_are_served_until_shutdown(node_call: Any) -> None:
    server = serve_metrics(node_call.node, LoopWatchdog(str), "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.server_port}/metrics"

    def get() -> bytes:
        with urllib.request.urlopen(address, timeout=30) as answer:
            content: bytes = answer.read()
            return content

    assert b"ottla_partitions 1.0" in await asyncio.to_thread(get)
    await asyncio.to_thread(server.shutdown)
    server.server_close()
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(get)


async def test_a_port_in_use(node_call: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            serve_metrics(node_call.node, LoopWatchdog(str), "127.0.0.1", taken.getsockname()[1])
