"""A group's coordinator follows the leader of its partition of `__consumer_offsets`."""

import asyncio
from typing import Any

import pytest

from ottla.controller.image import BrokerVanished
from ottla.protocol.errors import ErrorCode

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS = 11, 12, 13, 14, 15
DELETE_GROUPS, OFFSET_DELETE = 42, 47
OFFSETS = "__consumer_offsets"


async def coordinator(node_call: Any, version: int = 4) -> tuple[ErrorCode, int]:
    """Error and broker, for group g."""
    build = node_call.request(FIND_COORDINATOR, version)
    if version < 4:
        found = await node_call.ask(build.FindCoordinatorRequest(key="g"))
    else:
        answer = await node_call.ask(build.FindCoordinatorRequest(coordinator_keys=("g",)))
        (found,) = answer.coordinators
    return found.error_code, found.node_id


async def commit(node_call: Any, offset: int = 5) -> ErrorCode:
    build = node_call.request(OFFSET_COMMIT, 8)
    partition = build.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topics = (build.OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    answer = await node_call.ask(build.OffsetCommitRequest(group_id="g", topics=topics))
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


async def committed(node_call: Any) -> tuple[ErrorCode, int]:
    """Error and offset; retries while the coordinator loads."""
    build = node_call.request(OFFSET_FETCH, 7)
    topics = (build.OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    async with asyncio.timeout(60):
        while True:
            answer = await node_call.ask(build.OffsetFetchRequest(group_id="g", topics=topics))
            if answer.error_code is not ErrorCode.coordinator_load_in_progress:
                break
            await asyncio.sleep(0.005)
    if answer.error_code is not ErrorCode.none:
        return answer.error_code, -1
    return answer.error_code, answer.topics[0].partitions[0].committed_offset


@pytest.fixture
async def own(start_node: Any) -> Any:
    """A broker that coordinates group g, which has committed offset 5."""
    node_call = await start_node(
        offsets_topic_num_partitions="2", offsets_topic_replication_factor="1"
    )
    await node_call.create("t")
    assert await coordinator(node_call) == (ErrorCode.none, node_call.node.config.id)
    assert await commit(node_call) is ErrorCode.none
    return node_call


async def move(node_call: Any, *replicas: int, **more: Any) -> None:
    await node_call.appear(7)
    index = node_call.node.groups.partition_for("g")
    await node_call.place(OFFSETS, replicas, index=index, **more)


@pytest.mark.parametrize("version", range(7))
async def test_the_leader_of_the_groups_partition_is_the_coordinator(
    own: Any, version: int
) -> None:
    assert await coordinator(own, version) == (ErrorCode.none, own.node.config.id)
    await move(own, 7, own.node.config.id)
    assert await coordinator(own, version) == (ErrorCode.none, 7)


async def test_without_a_live_leader_there_is_no_coordinator(own: Any) -> None:
    missing = (ErrorCode.coordinator_not_available, -1)
    await move(own, 7, own.node.config.id, leader=-1)
    assert await coordinator(own) == missing
    await move(own, 7, own.node.config.id)
    await own.node.view.apply([BrokerVanished(7)])
    assert await coordinator(own) == missing
    await own.appear(7, listener="REPLICATION")
    assert await coordinator(own) == missing


async def refusals(node_call: Any) -> dict[str, ErrorCode]:
    """The errors of a group's requests, on a broker that does not coordinate it."""
    ask, build = node_call.ask, node_call.request
    join = build(JOIN_GROUP, 5)
    protocol = join.JoinGroupRequestProtocol(name="range", metadata=b"")
    delete = build(OFFSET_DELETE, 0)
    deleted = delete.OffsetDeleteRequestTopic(
        name="t", partitions=(delete.OffsetDeleteRequestPartition(partition_index=0),)
    )
    member = {"group_id": "g", "member_id": "m"}
    answers = {
        "join": await ask(
            join.JoinGroupRequest(
                **member,
                session_timeout=10_000,
                rebalance_timeout=10_000,
                protocol_type="consumer",
                protocols=(protocol,),
            )
        ),
        "sync": await ask(build(SYNC_GROUP, 3).SyncGroupRequest(**member, generation_id=1)),
        "beat": await ask(build(HEARTBEAT, 3).HeartbeatRequest(**member, generation_id=1)),
        "leave": await ask(build(LEAVE_GROUP, 2).LeaveGroupRequest(**member)),
        "delete offsets": await ask(delete.OffsetDeleteRequest(group_id="g", topics=(deleted,))),
    }
    described = await ask(build(DESCRIBE_GROUPS, 4).DescribeGroupsRequest(groups=("g",)))
    deleted = await ask(build(DELETE_GROUPS, 1).DeleteGroupsRequest(groups_names=("g",)))
    return {
        **{name: answer.error_code for name, answer in answers.items()},
        "describe": described.groups[0].error_code,
        "delete": deleted.results[0].error_code,
        "commit": await commit(node_call),
        "committed": (await committed(node_call))[0],
    }


async def test_a_former_coordinator_returns_an_error(own: Any) -> None:
    await move(own, 7, own.node.config.id)
    found = await refusals(own)
    assert found == dict.fromkeys(found, ErrorCode.not_coordinator)


async def test_a_former_replica_returns_an_error(own: Any) -> None:
    await move(own, 7)
    found = await refusals(own)
    assert found == dict.fromkeys(found, ErrorCode.not_coordinator)


async def test_a_coordinator_elected_again_has_the_committed_offsets(own: Any) -> None:
    me = own.node.config.id
    await move(own, 7, me)
    await move(own, me, 7, isr=(me,))
    assert await committed(own) == (ErrorCode.none, 5)
    assert await commit(own, 6) is ErrorCode.none
    assert await committed(own) == (ErrorCode.none, 6)
