"""Offsets of partitions with other replicas; the other brokers exist only in the metadata."""

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 2
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
DEBUGGING = -2


async def ask(
    node_call: Any, timestamp: int, version: int = 10, replica_id: int = -1, **more: int
) -> tuple[ErrorCode, int]:
    """Error and offset, of t-0."""
    build = node_call.request(KEY, version)
    partition = build.ListOffsetsPartition(partition_index=0, timestamp=timestamp, **more)
    topics = (build.ListOffsetsTopic(name="t", partitions=(partition,)),)
    answer = await node_call.ask(build.ListOffsetsRequest(replica_id=replica_id, topics=topics))
    (found,) = answer.topics[0].partitions
    return found.error_code, found.offset


@pytest.fixture
def own(node_call: Any) -> int:
    number: int = node_call.node.config.id
    return number


@pytest.fixture(autouse=True)
async def cluster(node_call: Any, own: int) -> None:
    """This broker leads t-0; of its three records, at 1000, 2000 and 3000, broker 7 has two."""
    await node_call.appear(7)
    await node_call.place("t", (own, 7))
    for number in range(1, 4):
        batch = node_call.batch(b"v", time_ms=1_000 * number)
        await node_call.produce("t", batch, acks=1)
    await node_call.copied(7, 2)


async def test_a_consumer_sees_committed_offsets(node_call: Any) -> None:
    assert await ask(node_call, LATEST) == (ErrorCode.none, 2)
    assert await ask(node_call, 1_500) == (ErrorCode.none, 1)
    assert await ask(node_call, 2_500) == (ErrorCode.none, -1)
    await node_call.copied(7, 3)
    assert await ask(node_call, LATEST) == (ErrorCode.none, 3)
    assert await ask(node_call, 2_500) == (ErrorCode.none, 2)
    assert await ask(node_call, MAX_TIMESTAMP) == (ErrorCode.none, 2)


@pytest.mark.parametrize("replica_id", [7, DEBUGGING])
async def test_brokers_and_debugging_clients_see_the_log_end(
    node_call: Any, replica_id: int
) -> None:
    assert await ask(node_call, LATEST, replica_id=replica_id) == (ErrorCode.none, 3)
    assert await ask(node_call, EARLIEST, replica_id=replica_id) == (ErrorCode.none, 0)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, MAX_TIMESTAMP, 1_500])
async def test_a_follower_refers_consumers_to_the_leader(
    node_call: Any, own: int, timestamp: int
) -> None:
    await node_call.place("t", (7, own))
    assert await ask(node_call, timestamp) == (ErrorCode.not_leader_or_follower, -1)
    assert await ask(node_call, timestamp, replica_id=8) == (ErrorCode.not_leader_or_follower, -1)
    code, _ = await ask(node_call, timestamp, replica_id=DEBUGGING)
    assert code is ErrorCode.none


async def test_the_callers_epoch_is_compared(node_call: Any, own: int) -> None:
    state = await node_call.place("t", (own, 7))
    await node_call.copied(7, 3)
    for epoch, expected in (
        (state.leader_epoch - 1, (ErrorCode.fenced_leader_epoch, -1)),
        (state.leader_epoch, (ErrorCode.none, 3)),
        (state.leader_epoch + 1, (ErrorCode.unknown_leader_epoch, -1)),
    ):
        assert await ask(node_call, LATEST, current_leader_epoch=epoch) == expected, epoch


class TestNewLeader:
    """A leader elected while its high watermark lags: the end could go back (KIP-207)."""

    @pytest.fixture(autouse=True)
    async def elected(self, node_call: Any, own: int, cluster: None) -> None:
        await node_call.place("t", (7, own))
        await node_call.place("t", (own, 7))

    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (1, ErrorCode.leader_not_available),
            (4, ErrorCode.leader_not_available),
            (5, ErrorCode.offset_not_available),
            (10, ErrorCode.offset_not_available),
        ],
    )
    async def test_the_end_is_not_available_before_it_is_known(
        self, node_call: Any, version: int, code: ErrorCode
    ) -> None:
        assert await ask(node_call, LATEST, version) == (code, -1)
        assert await ask(node_call, 2_500, version) == (code, -1)
        assert await ask(node_call, EARLIEST, version) == (ErrorCode.none, 0)
        assert await ask(node_call, 1_500, version) == (ErrorCode.none, 1)
        await node_call.copied(7, 3)
        assert await ask(node_call, LATEST, version) == (ErrorCode.none, 3)
        assert await ask(node_call, 2_500, version) == (ErrorCode.none, 2)

    async def test_the_end_is_available_to_brokers(self, node_call: Any) -> None:
        assert await ask(node_call, LATEST, replica_id=7) == (ErrorCode.none, 3)
