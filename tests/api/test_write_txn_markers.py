import asyncio
from typing import Any

import pytest

from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

KEY = 27


def marker(build: Any, producer_id: int = 7, epoch: int = 1, **changes: Any) -> Any:
    partitions = changes.pop("partitions", (("t", (0,)),))
    topics = tuple(
        build.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
        for name, indexes in partitions
    )
    given = {"transaction_result": False, "coordinator_epoch": 4, **changes}
    return build.WritableTxnMarker(
        producer_id=producer_id, producer_epoch=epoch, topics=topics, **given
    )


async def write(
    node_call: Any, *markers: dict[str, Any], version: int = 2, broker_id: int | None = 2
) -> list[Any]:
    """The answers' codes by producer id and partition, to a broker or, with None, to a client."""
    build = node_call.request(KEY, version)
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "", 0, broker_id=broker_id)
    answer = await node_call.ask(
        build.WriteTxnMarkersRequest(markers=tuple(marker(build, **each) for each in markers)),
        session=session,
    )
    return [
        (result.producer_id, topic.name, each.partition_index, each.error_code)
        for result in answer.markers
        for topic in result.topics
        for each in topic.partitions
    ]


def transact(node_call: Any, producer_id: int = 7, epoch: int = 0, sequence: int = 0) -> None:
    partition = node_call.node.partitions.get("t", 0)
    batch = node_call.batch(
        b"a",
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    guard = partition.appends.begin_verification(producer_id, epoch, sequence, version_2=False)
    partition.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)


@pytest.mark.parametrize("version", [1, 2])
async def test_markers_end_transactions(node_call: Any, version: int) -> None:
    partition = node_call.node.partitions.get("t", 0)
    transact(node_call, 7)
    transact(node_call, 8)
    found = await write(
        node_call,
        {"producer_id": 7, "transaction_result": True},
        {"producer_id": 8},
        version=version,
    )
    assert found == [(7, "t", 0, ErrorCode.none), (8, "t", 0, ErrorCode.none)]
    assert partition.last_stable_offset == partition.log.end_offset == 4
    assert partition.log.active.txn_index.overlapping(0, 9)[0] == [(8, 1, 3, 4)]
    states = partition.log.producers.producers
    assert [(states[n].producer_epoch, states[n].coordinator_epoch) for n in (7, 8)] == [(1, 4)] * 2


async def test_trap_4_a_marker_sent_again_is_answered_without_error(node_call: Any) -> None:
    transact(node_call)
    for _ in range(2):
        found = await write(node_call, {"transaction_version": 2})
        assert found == [(7, "t", 0, ErrorCode.none)]


async def test_zombies_are_fenced(node_call: Any) -> None:
    transact(node_call)
    assert await write(node_call, {}) == [(7, "t", 0, ErrorCode.none)]
    for changes, code in (
        ({"epoch": 0}, ErrorCode.invalid_producer_epoch),
        ({"coordinator_epoch": 3}, ErrorCode.transaction_coordinator_fenced),
    ):
        assert await write(node_call, changes) == [(7, "t", 0, code)]
    transact(node_call, epoch=1)
    assert await write(node_call, {"transaction_version": 2}) == [
        (7, "t", 0, ErrorCode.invalid_producer_epoch)
    ], "a late marker must not end the next transaction"
    assert await write(node_call, {}) == [(7, "t", 0, ErrorCode.none)], "in versions 0 and 1 it may"


async def test_each_partition_has_its_own_answer(node_call: Any) -> None:
    await node_call.create("two", partitions=2)
    partitions = (("t", (0, 5)), ("none", (0,)), ("two", (1,)))
    assert await write(node_call, {"partitions": partitions}) == [
        (7, "t", 0, ErrorCode.none),
        (7, "t", 5, ErrorCode.unknown_topic_or_partition),
        (7, "none", 0, ErrorCode.unknown_topic_or_partition),
        (7, "two", 1, ErrorCode.none),
    ]
    assert await write(node_call) == []


async def test_the_answer_waits_for_the_in_sync_replicas(node_call: Any) -> None:
    await node_call.appear(2)
    await node_call.place("t", (1, 2))
    asked = asyncio.create_task(write(node_call, {}))
    await asyncio.sleep(0.01)
    assert not asked.done()
    await node_call.copied(2, 1)
    assert await asyncio.wait_for(asked, 30) == [(7, "t", 0, ErrorCode.none)]
    await node_call.place("t", (2, 1))
    assert await write(node_call, {}) == [(7, "t", 0, ErrorCode.not_leader_or_follower)]


async def test_groups_write_their_own_markers(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("other")
    groups = node_call.node.groups
    completed = []

    async def complete(*how: Any) -> None:
        completed.append(how)

    monkeypatch.setattr(groups, "complete_transaction", complete)
    known = node_call.node.partitions.get("other", 0)
    monkeypatch.setattr(
        node_call.node.partitions, "get", lambda topic, index: known if index == 3 else None
    )
    partitions = ((OFFSETS_TOPIC, (3, 4)),)
    given = {"partitions": partitions, "transaction_result": True, "transaction_version": 2}
    assert await write(node_call, given) == [
        (7, OFFSETS_TOPIC, 3, ErrorCode.none),
        (7, OFFSETS_TOPIC, 4, ErrorCode.unknown_topic_or_partition),
    ]
    assert completed == [(3, 7, 1, True, 4, 2)]


async def test_the_error_of_a_group_is_that_of_its_partition(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another partition gets its marker; the sender tries again with the rest."""
    transact(node_call)
    partitions = node_call.node.partitions
    known = partitions.get("t", 0)
    monkeypatch.setattr(
        partitions, "get", lambda topic, index: known if topic in ("t", OFFSETS_TOPIC) else None
    )
    node_call.node.coordinators.close()
    partitions = ((OFFSETS_TOPIC, (3,)), ("t", (0,)))
    assert await write(node_call, {"partitions": partitions}) == [
        (7, OFFSETS_TOPIC, 3, ErrorCode.not_leader_or_follower),
        (7, "t", 0, ErrorCode.none),
    ]


async def test_a_marker_that_the_replicas_do_not_get_in_time(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.api.write_txn_markers.TIMEOUT_MS", 5)
    await node_call.create("alone")
    await node_call.appear(2)
    await node_call.place("t", (1, 2))
    partitions = (("t", (0,)), ("alone", (0,)))
    assert await write(node_call, {"partitions": partitions}) == [
        (7, "t", 0, ErrorCode.request_timed_out),
        (7, "alone", 0, ErrorCode.none),
    ]


async def test_a_partition_that_is_named_again_gets_one_marker(node_call: Any) -> None:
    transact(node_call, 7)
    partition = node_call.node.partitions.get("t", 0)
    partitions = (("t", (0, 0, 0)), ("t", (0,)))
    found = await write(node_call, {"producer_id": 7, "partitions": partitions})
    assert found == [(7, "t", 0, ErrorCode.none)] * 2
    assert partition.log.end_offset == 2


async def test_an_administrator_aborts_and_does_no_more(node_call: Any) -> None:
    partition = node_call.node.partitions.get("t", 0)
    transact(node_call, 7)
    refused = ErrorCode.cluster_authorization_failed
    commit = {"producer_id": 7, "transaction_result": True}
    assert await write(node_call, commit, broker_id=None) == [(7, "t", 0, refused)]
    state = {"producer_id": 7, "partitions": ((TRANSACTIONS_TOPIC, (3,)),)}
    assert await write(node_call, {}, state, broker_id=None) == [
        (7, "t", 0, refused),
        (7, TRANSACTIONS_TOPIC, 3, refused),
    ]
    assert partition.log.end_offset == 1
    assert await write(node_call, {}, broker_id=None) == [(7, "t", 0, ErrorCode.none)]
    assert partition.last_stable_offset == partition.log.end_offset == 2
