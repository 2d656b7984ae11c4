from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 2
LATEST, EARLIEST, MAX_TIMESTAMP, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6


async def find(node_call: Any, timestamp: int, version: int = 11, **changes: Any) -> Any:
    build = node_call.request(KEY, version)
    partition = build.ListOffsetsPartition(
        partition_index=changes.pop("index", 0),
        timestamp=timestamp,
        current_leader_epoch=changes.pop("epoch", -1),
    )
    topics = (
        build.ListOffsetsTopic(
            name=changes.pop("topic", "t"), partitions=(partition,) * changes.pop("times", 1)
        ),
    )
    given = {"replica_id": -1, **changes}
    answer = await node_call.ask(build.ListOffsetsRequest(topics=topics, **given))
    return answer.topics[0].partitions[0]


async def fill(node_call: Any) -> None:
    for time_ms in (1000, 3000, 2000):
        await node_call.produce("t", node_call.batch(b"a", b"b", time_ms=time_ms))


@pytest.mark.parametrize("version", range(1, 12))
async def test_every_version_finds_ends_and_timestamps(node_call: Any, version: int) -> None:
    await fill(node_call)
    for asked, offset, time_ms in (
        (LATEST, 6, -1), (EARLIEST, 0, -1), (0, 0, 1000), (1001, 1, 1001), (1002, 2, 3000),
        (3001, 3, 3001), (3002, -1, -1),
    ):  # fmt: skip
        found = await find(node_call, asked, version)
        assert (found.error_code, found.offset, found.timestamp) == (
            ErrorCode.none, offset, time_ms,
        ), asked  # fmt: skip
        if version >= 4 and offset >= 0:
            assert found.leader_epoch == 0


@pytest.mark.parametrize(
    ("asked", "since", "offset"),
    [(MAX_TIMESTAMP, 7, 3), (LOCAL, 8, 0), (TIERED, 9, -1), (PENDING, 11, -1)],
)
async def test_special_timestamps_since_their_version(
    node_call: Any, asked: int, since: int, offset: int
) -> None:
    await fill(node_call)
    found = await find(node_call, asked, since)
    assert (found.error_code, found.offset) == (ErrorCode.none, offset)
    refused = await find(node_call, asked, since - 1)
    assert refused.error_code is ErrorCode.unsupported_version


async def test_an_empty_partition(node_call: Any) -> None:
    for asked, offset in ((LATEST, 0), (EARLIEST, 0), (MAX_TIMESTAMP, -1), (0, -1)):
        assert (await find(node_call, asked)).offset == offset


async def test_what_is_refused(node_call: Any) -> None:
    for changes, code in (
        ({"topic": "none"}, ErrorCode.unknown_topic_or_partition),
        ({"index": 3}, ErrorCode.unknown_topic_or_partition),
        ({"times": 2}, ErrorCode.invalid_request),
        ({"epoch": 5}, ErrorCode.unknown_leader_epoch),
        ({"timestamp": -9}, ErrorCode.unsupported_version),
    ):
        asked: dict[str, Any] = {"timestamp": LATEST, **changes}
        found = await find(node_call, **asked)
        assert (found.error_code, found.offset) == (code, -1), changes


async def test_read_committed_is_the_same_without_transactions(node_call: Any) -> None:
    await fill(node_call)
    assert (await find(node_call, LATEST, isolation_level=1)).offset == 6


async def test_a_search_fails_if_another_broker_led_meanwhile(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search runs in a thread; the log may be truncated and rewritten meanwhile."""
    await node_call.produce("t", node_call.batch(b"a", time_ms=500))

    async def deposed(work: Any) -> Any:
        for broker in (2, 3):
            await node_call.appear(broker)
        await node_call.place("t", (1, 2, 3), leader=2)
        await node_call.place("t", (1, 2, 3), isr=(1,))
        return work()

    monkeypatch.setattr(node_call.node.disk_reads, "run", deposed)
    answer = await find(node_call, 500)
    assert answer.error_code is ErrorCode.not_leader_or_follower


async def test_a_new_leader_knows_the_last_stable_offset_behind_an_open_transaction(
    node_call: Any,
) -> None:
    """A transaction from before the election holds the last stable offset below the epoch's start
    for as long as it is open. What is committed is known all the same: the high watermark tells
    (Kafka's Partition.fetchOffsetForTimestamp).
    """
    partition = node_call.node.partitions.get("t", 0)
    batch = node_call.batch(
        b"a",
        time_ms=2_000,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    guard = partition.appends.begin_verification(7, 0, 0, version_2=False)
    partition.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)
    await node_call.appear(2)
    await node_call.place("t", (1, 2))
    for asked in (LATEST, MAX_TIMESTAMP, 1_500):
        found = await find(node_call, asked, isolation_level=1)
        expected = (ErrorCode.none, 0 if asked == LATEST else -1)
        assert (found.error_code, found.offset) == expected, asked
    # A record that the follower does not have yet is behind the epoch's start, too.
    await node_call.produce("t", node_call.batch(b"b"), acks=1)
    found = await find(node_call, LATEST, isolation_level=1)
    assert (found.error_code, found.offset) == (ErrorCode.none, 0)
    await node_call.place("t", (1, 2))
    for isolation_level in (0, 1):
        found = await find(node_call, LATEST, isolation_level=isolation_level)
        assert found.error_code is ErrorCode.offset_not_available, "the next epoch starts at 2"
    await node_call.copied(2, 2)
    for isolation_level, offset in ((0, 2), (1, 0)):
        found = await find(node_call, LATEST, isolation_level=isolation_level)
        assert (found.error_code, found.offset) == (ErrorCode.none, offset)
