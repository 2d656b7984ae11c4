"""Which offsets reach the coordinator, and which error each partition gets."""

import asyncio
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


def collect() -> OffsetsToCommit:
    offsets = OffsetsToCommit(LEADER_EPOCH)
    offsets.add(topic(1, 2, 0), KNOWN, UNKNOWN)
    offsets.add(topic(0), None, ErrorCode.unknown_topic_id)
    return offsets


def test_existing_partitions_are_committed_and_all_are_answered_in_order() -> None:
    asked: list[tuple[OffsetToCommit, ...]] = []

    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        asked.append(found)
        return [ErrorCode.none, ErrorCode.offset_metadata_too_large]

    errors = list(asyncio.run(collect().commit(commit)))

    assert asked == [
        (OffsetToCommit("t", ID, 1, 41, 3, "note"), OffsetToCommit("t", ID, 0, 40, 3, "note"))
    ]
    assert errors == [
        ErrorCode.none,
        UNKNOWN,
        ErrorCode.offset_metadata_too_large,
        ErrorCode.unknown_topic_id,
    ]


def test_an_error_of_the_request_is_that_of_each_of_its_offsets() -> None:
    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        raise ApiError(ErrorCode.not_coordinator)

    errors = list(asyncio.run(collect().commit(commit)))

    moved = ErrorCode.not_coordinator
    assert errors == [moved, UNKNOWN, moved, ErrorCode.unknown_topic_id]


def test_the_coordinator_is_not_asked_about_nothing() -> None:
    async def commit(found: tuple[OffsetToCommit, ...]) -> list[ErrorCode]:
        raise AssertionError(found)

    offsets = OffsetsToCommit(LEADER_EPOCH)
    offsets.add(topic(5), KNOWN, UNKNOWN)

    assert list(asyncio.run(offsets.commit(commit))) == [UNKNOWN]
