"""TxnOffsetCommit in all its versions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.api.groups.conftest import TOPIC_ID

from ottla.protocol.errors import ApiError, ErrorCode

OK = ErrorCode.none
IDS = {"t": TOPIC_ID, "u": UUID(int=1)}
"""Of the topics, of which u does not exist."""
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
        api.struct(
            "TxnOffsetCommitRequestTopic",
            28,
            version,
            **({"name": name} if version < 6 else {"topic_id": topic_id}),
            partitions=partitions,
        )
        for name, topic_id in IDS.items()
    )
    request = {
        "transactional_id": "id",
        "group_id": "g",
        "producer_id": PRODUCER,
        "producer_epoch": EPOCH,
        "topics": topics,
    }
    answer = await api.ask("txn_offset_commit", version, **(request | fields))
    names = {topic_id: name for name, topic_id in IDS.items()}
    return {
        (
            topic.name if version < 6 else names[topic.topic_id],
            each.partition_index,
        ): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }


def answers(error: ErrorCode, version: int) -> dict[Any, ErrorCode]:
    unknown = ErrorCode.unknown_topic_or_partition
    of_no_topic = unknown if version < 6 else ErrorCode.unknown_topic_id
    return {("t", 0): error, ("t", 5): unknown, ("u", 0): of_no_topic, ("u", 5): of_no_topic}


@pytest.mark.parametrize("version", range(7))
async def test_offsets_are_pending_until_the_marker(api: Any, version: int) -> None:
    assert await commit(api, version) == answers(OK, version)
    assert await api.groups.fetch_all("g") == {}
    index = api.groups.partition_for("g")
    await api.groups.complete_transaction(index, PRODUCER, EPOCH, True, 0)
    (fetched,) = (await api.groups.fetch_all("g"))["t"]
    assert (fetched.partition, fetched.offset, fetched.metadata) == (0, 42, "note")
    assert fetched.leader_epoch == (3 if version >= 2 else -1)


@pytest.mark.parametrize("version", range(7))
async def test_a_former_owner_is_fenced(api: Any, version: int) -> None:
    """KIP-447: since version 3 the group knows who commits."""
    member_id = await api.stable()
    older = version < 3
    generation = "generation_id" if version < 6 else "generation_id_or_member_epoch"
    fields = {generation: 1, "member_id": member_id, "group_instance_id": "i"}
    assert await commit(api, version, **fields) == answers(OK, version)
    for change, error in (
        ({generation: 0}, ErrorCode.illegal_generation),
        ({"member_id": "other"}, ErrorCode.fenced_instance_id),
        ({"member_id": "other", "group_instance_id": None}, ErrorCode.unknown_member_id),
    ):
        expected = OK if older else error
        assert await commit(api, version, **(fields | change)) == answers(expected, version)


@pytest.mark.parametrize("version", range(7))
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
    assert await commit(api, version) == answers(expected, version)
    assert await commit(api, version, group_id="") == answers(ErrorCode.invalid_group_id, version)


async def test_no_existing_partition(api: Any) -> None:
    """Nothing is appended, and no group comes into being."""
    topics = (api.struct("TxnOffsetCommitRequestTopic", 28, 3, name="u", partitions=()),)
    assert await commit(api, 3, topics=topics) == {}
    assert api.logs == {}


async def test_errors_of_member_epochs_since_version_6(api: Any) -> None:
    """KIP-1319: before, both are ILLEGAL_GENERATION."""
    stale, missing = ErrorCode.stale_member_epoch, ErrorCode.group_id_not_found
    epoch = (await api.beat(member_id="m")).member_epoch
    for version, name in ((5, "generation_id"), (6, "generation_id_or_member_epoch")):
        old = version < 6
        fields = {"member_id": "m", name: epoch}
        assert await commit(api, version, **fields) == answers(OK, version)
        late = await commit(api, version, **(fields | {name: epoch + 1}))
        assert late == answers(ErrorCode.illegal_generation if old else stale, version)
        other = await commit(api, version, **fields, group_id="none")
        assert other == answers(ErrorCode.illegal_generation if old else missing, version)
