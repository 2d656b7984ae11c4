"""Which offsets reach the coordinator, and which error each partition gets."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from ottla.api.offsets_to_commit import OffsetsToCommit
from ottla.groups.offsets.commit import OffsetToCommit
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField

LEADER_EPOCH = VersionedField(28, "TxnOffsetCommitRequestPartition", "committed_leader_epoch", -1)
ID = UUID(int=7)
KNOWN: Any = SimpleNamespace(name="t", topic_id=ID, partitions=(0, 1))
UNKNOWN = ErrorCode.unknown_topic_or_partition


def topic(*indexes: int) -> Any:
    return SimpleNamespace(
        partitions=[
            SimpleNamespace(
                partition_index=index,
                committed_offset=40 + index,
                committed_leader_epoch=3,
                committed_metadata="note",
            )
            for index in indexes
        ]
    )


async def collect() -> OffsetsToCommit:
    offsets = OffsetsToCommit(LEADER_EPOCH)
    await offsets.add(topic(1, 2, 0), KNOWN, UNKNOWN)
    await offsets.add(topic(0), None, ErrorCode.unknown_topic_id)
    return offsets


async def test_existing_partitions_are_committed_and_all_are_answered_in_order() -> None:
    asked: list[tuple[OffsetToCommit, ...]] = []

    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        asked.append(found)
        return [ErrorCode.none, ErrorCode.offset_metadata_too_large]

    errors = list(await (await collect()).commit(commit))

    assert asked == [
        (OffsetToCommit("t", ID, 1, 41, 3, "note"), OffsetToCommit("t", ID, 0, 40, 3, "note"))
    ]
    assert errors == [
        ErrorCode.none,
        UNKNOWN,
        ErrorCode.offset_metadata_too_large,
        ErrorCode.unknown_topic_id,
    ]


async def test_an_error_of_the_request_is_that_of_each_of_its_offsets() -> None:
    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        raise ApiError(ErrorCode.not_coordinator)

    errors = list(await (await collect()).commit(commit))

    moved = ErrorCode.not_coordinator
    assert errors == [moved, UNKNOWN, moved, ErrorCode.unknown_topic_id]


async def test_the_coordinator_is_not_asked_about_nothing() -> None:
    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        raise AssertionError(found)

    offsets = OffsetsToCommit(LEADER_EPOCH)
    await offsets.add(topic(5), KNOWN, UNKNOWN)

    assert list(await offsets.commit(commit)) == [UNKNOWN]


async def test_answers_come_topic_by_topic() -> None:
    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        return [ErrorCode.none] * len(found)

    offsets = await collect()
    errors = await offsets.commit(commit)
    answers = [
        await offsets.answers(each, errors, lambda index, error: (index, error))
        for each in (topic(1, 2, 0), topic(0))
    ]
    assert answers == [
        ((1, ErrorCode.none), (2, UNKNOWN), (0, ErrorCode.none)),
        ((0, ErrorCode.unknown_topic_id),),
    ]
