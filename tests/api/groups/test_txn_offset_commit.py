"""TxnOffsetCommit in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode

OK = ErrorCode.none
PRODUCER, EPOCH = 3, 1


async def commit(api: Any, version: int, offset: int = 42, **fields: Any) -> dict[Any, ErrorCode]:
    """Commits in partitions 0 and 5 of topic t, of which 5 does not exist, and in topic u."""
    partitions = tuple(
        api.struct(
            "TxnOffsetCommitRequestPartition",
            28,
            version,
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=3,
            committed_metadata="note",
        )
        for index in (0, 5)
    )
    topics = tuple(
        api.struct("TxnOffsetCommitRequestTopic", 28, version, name=name, partitions=partitions)
        for name in ("t", "u")
    )
    request = {
        "transactional_id": "id",
        "group_id": "g",
        "producer_id": PRODUCER,
        "producer_epoch": EPOCH,
        "topics": topics,
    }
    answer = await api.ask("txn_offset_commit", version, **(request | fields))
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }


def answers(error: ErrorCode) -> dict[Any, ErrorCode]:
    unknown = ErrorCode.unknown_topic_or_partition
    return {("t", 0): error, ("t", 5): unknown, ("u", 0): unknown, ("u", 5): unknown}


@pytest.mark.parametrize("version", range(6))
async def test_offsets_are_pending_until_the_marker(api: Any, version: int) -> None:
    assert await commit(api, version) == answers(OK)
    assert await api.groups.fetch_all("g") == {}
    index = api.groups.partition_for("g")
    await api.groups.complete_transaction(index, PRODUCER, EPOCH, True, 0)
    (fetched,) = (await api.groups.fetch_all("g"))["t"]
    assert (fetched.partition, fetched.offset, fetched.metadata) == (0, 42, "note")
    assert fetched.leader_epoch == (3 if version >= 2 else -1)


@pytest.mark.parametrize("version", range(6))
async def test_a_former_owner_is_fenced(api: Any, version: int) -> None:
    """KIP-447: since version 3 the group knows who commits."""
    member_id = await api.stable()
    older = version < 3
    fields = {"generation_id": 1, "member_id": member_id, "group_instance_id": "i"}
    assert await commit(api, version, **fields) == answers(OK)
    for change, error in (
        ({"generation_id": 0}, ErrorCode.illegal_generation),
        ({"member_id": "other"}, ErrorCode.fenced_instance_id),
        ({"member_id": "other", "group_instance_id": None}, ErrorCode.unknown_member_id),
    ):
        expected = OK if older else error
        assert await commit(api, version, **(fields | change)) == answers(expected)


@pytest.mark.parametrize("version", range(6))
async def test_an_error_of_the_coordinator(
    api: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers before version 2 end where a coordinator is loading (KAFKA-7296)."""

    def loading(partition: int) -> None:
        raise ApiError(ErrorCode.coordinator_load_in_progress)

    monkeypatch.setattr(api, "open", loading)
    known = version >= 2
    expected = (
        ErrorCode.coordinator_load_in_progress if known else ErrorCode.coordinator_not_available
    )
    assert await commit(api, version) == answers(expected)
    assert await commit(api, version, group_id="") == answers(ErrorCode.invalid_group_id)


async def test_no_existing_partition(api: Any) -> None:
    """Nothing is appended, and no group comes into being."""
    topics = (api.struct("TxnOffsetCommitRequestTopic", 28, 3, name="u", partitions=()),)
    assert await commit(api, 3, topics=topics) == {}
    assert api.logs == {}
