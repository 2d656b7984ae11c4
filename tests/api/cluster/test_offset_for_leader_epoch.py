"""The ends of epochs, on a leader of several epochs and on a former leader."""

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 23
FOLLOWER, CONSUMER = 7, -1


async def ask(
    node_call: Any, epoch: int, current: int = -1, replica_id: int = CONSUMER
) -> tuple[ErrorCode, int, int]:
    """Error, epoch and end offset, of t-0."""
    build = node_call.request(KEY, 4)
    partition = build.OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=epoch
    )
    topics = (build.OffsetForLeaderTopic(topic="t", partitions=(partition,)),)
    request = build.OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)
    (found,) = (await node_call.ask(request)).topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.fixture
async def epochs(node_call: Any) -> dict[str, int]:
    """This broker led in the first epoch (offsets 0, 1) and again in the last (from 2 on); between
    them broker 7 led and wrote nothing that is here.
    """
    own = node_call.node.config.id
    found = {}
    found["first"] = (await node_call.place("t", (own, 7))).leader_epoch
    for _ in range(2):
        await node_call.produce("t", node_call.batch(b"v"), acks=1)
    found["between"] = (await node_call.place("t", (7, own))).leader_epoch
    found["last"] = (await node_call.place("t", (own, 7))).leader_epoch
    await node_call.produce("t", node_call.batch(b"v"), acks=1)
    return found


@pytest.mark.parametrize("replica_id", [FOLLOWER, CONSUMER])
async def test_an_epoch_ends_where_the_next_one_starts(
    node_call: Any, epochs: dict[str, int], replica_id: int
) -> None:
    first, last = epochs["first"], epochs["last"]
    for epoch, expected in (
        (first, (ErrorCode.none, first, 2)),
        # No record of it is here: the largest earlier epoch is returned (KIP-279).
        (epochs["between"], (ErrorCode.none, first, 2)),
        (last, (ErrorCode.none, last, 3)),
        (last + 1, (ErrorCode.none, -1, -1)),
    ):
        assert await ask(node_call, epoch, replica_id=replica_id) == expected, epoch


async def test_the_callers_own_epoch_is_compared(node_call: Any, epochs: dict[str, int]) -> None:
    first, last = epochs["first"], epochs["last"]
    for current, code in (
        (last - 1, ErrorCode.fenced_leader_epoch),
        (last, ErrorCode.none),
        (last + 1, ErrorCode.unknown_leader_epoch),
    ):
        assert (await ask(node_call, first, current))[0] is code, current


async def test_a_former_leader_refuses(node_call: Any, epochs: dict[str, int]) -> None:
    own, refused = node_call.node.config.id, (ErrorCode.not_leader_or_follower, -1, -1)
    await node_call.place("t", (7, own))
    assert await ask(node_call, epochs["first"]) == refused
    await node_call.place("t", (7, 8))
    assert await ask(node_call, epochs["first"]) == refused
