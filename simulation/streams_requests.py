"""The requests of a streams group's member (KIP-1071), and what their answers have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.streams_ledger import Task
from simulation.streams_topology import TOPIC_OF

STREAMS_GROUP: Final = "app"
HEARTBEAT: Final = 88
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
COMMIT_VERSION: Final = 9
"""The first one in which members have epochs."""


def task_ids(build: Any, tasks: Iterable[Task]) -> tuple[Any, ...]:
    """As a heartbeat has them."""
    numbers: dict[str, list[int]] = {}
    for name, number in sorted(tasks):
        numbers.setdefault(name, []).append(number)
    return tuple(
        build.TaskIds(subtopology_id=name, partitions=tuple(each)) for name, each in numbers.items()
    )


def task_offsets(build: Any, offsets: Mapping[Task, int] | None) -> tuple[Any, ...] | None:
    """As a heartbeat of version 1 has them."""
    if offsets is None:
        return None
    return tuple(
        build.TaskOffset(subtopology_id=name, partition=number, offset=offset)
        for (name, number), offset in sorted(offsets.items())
    )


def tasks(told: Iterable[Any]) -> frozenset[Task]:
    """What an answer has."""
    return frozenset((each.subtopology_id, number) for each in told for number in each.partitions)


def commit_request(
    member_id: str, instance: str | None, epoch: int, positions: Mapping[Task, int]
) -> Any:
    """A commit of some tasks."""
    build = messages_of(OFFSET_COMMIT, COMMIT_VERSION, "request")
    return build.OffsetCommitRequest(
        group_id=STREAMS_GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=instance,
        topics=tuple(
            build.OffsetCommitRequestTopic(
                name=TOPIC_OF[name],
                partitions=tuple(
                    build.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for (each, number), offset in sorted(positions.items())
                    if each == name
                ),
            )
            for name in sorted({name for name, _ in positions})
        ),
    )


def fetch_request(wanted: Iterable[Task]) -> Any:
    """The committed offsets of some tasks are asked for."""
    build, found = messages_of(OFFSET_FETCH, 7, "request"), sorted(wanted)
    return build.OffsetFetchRequest(
        group_id=STREAMS_GROUP,
        topics=tuple(
            build.OffsetFetchRequestTopic(
                name=TOPIC_OF[name],
                partition_indexes=tuple(number for each, number in found if each == name),
            )
            for name in sorted({name for name, _ in found})
        ),
        require_stable=True,
    )


def codes(answer: Any) -> list[tuple[Task, ErrorCode]]:
    """Of each task in the answer to a commit."""
    names = {topic: name for name, topic in TOPIC_OF.items()}
    return [
        ((names[topic.name], each.partition_index), ErrorCode(each.error_code))
        for topic in answer.topics
        for each in topic.partitions
    ]
