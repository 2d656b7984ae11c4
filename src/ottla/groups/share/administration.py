"""What administrators change of a share group without members: where it begins, and what of it is
forgotten (AlterShareGroupOffsets, DeleteShareGroupOffsets, DeleteGroups).

The functions decide on a group, which may be a copy (`ottla.groups.aside`), and raise ApiError
(NON_EMPTY_GROUP).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from ottla.groups.consumer.topics import Topics
from ottla.groups.share import state_partitions
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.requests import StatesToInitialize
from ottla.groups.share.state_partitions import PartitionsOfTopics
from ottla.groups.share.step import Step
from ottla.groups.share.stored import StatesValue, StateTopic
from ottla.groups.share.written import group_removal, states_record
from ottla.protocol.errors import ApiError, ErrorCode

StatesToDelete: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions whose state the share coordinator is to forget, by topic."""


class AlteredOffsets(NamedTuple):
    """AlterShareGroupOffsets: what to ask the share coordinator for, and what it cannot do."""

    to_initialize: StatesToInitialize
    unknown: frozenset[tuple[str, int]]
    """Topics and partitions that do not exist."""


def alter_offsets(
    group: ShareGroup, offsets: Mapping[str, Mapping[int, int]], topics: Topics, step: Step
) -> AlteredOffsets:
    """AlterShareGroupOffsets, perhaps of a new group. `offsets`: by topic and partition."""
    _check_empty(group)
    wanted: dict[UUID, dict[int, int]] = {}
    begun: dict[UUID, StateTopic] = {}
    unknown: set[tuple[str, int]] = set()
    for name, its in offsets.items():
        topic = topics.by_name.get(name)
        count = 0 if topic is None else topic.partition_count
        known = {number: its[number] for number in its if 0 <= number < count}
        unknown.update((name, number) for number in its if number not in known)
        if topic is not None and known:
            wanted[topic.id] = known
            begun[topic.id] = StateTopic(name, frozenset(known))
    if begun:
        _change(group, state_partitions.beginning(group.states, begun), step)
    return AlteredOffsets(StatesToInitialize(group.epoch, wanted), frozenset(unknown))


def begin_offset_removal(
    group: ShareGroup, names: Sequence[str], topics: Topics, step: Step
) -> StatesToDelete:
    """DeleteShareGroupOffsets of these topics: what the share coordinator is to forget. A topic
    without state is not in there.
    """
    _check_empty(group)
    states, partitions = state_partitions.deleting(group.states, names, topics)
    _change(group, states, step)
    return partitions


def begin_removal(group: ShareGroup, topics: Topics, step: Step) -> StatesToDelete:
    """Before the group is removed, the share coordinator is to forget these."""
    _check_empty(group)
    states, partitions = state_partitions.all_deleting(group.states, topics)
    _change(group, states, step)
    return partitions


def remove(group: ShareGroup, step: Step) -> None:
    """Removes the group."""
    _check_empty(group)
    step.records += group_removal(group)


def still_to_begin(group: ShareGroup, wanted: StatesToInitialize) -> PartitionsOfTopics:
    """Of the states that the share coordinator was to begin, those that the group still waits for:
    none if it was deleted meanwhile and another one has its name.
    """
    if wanted.epoch > group.epoch:
        return {}
    return state_partitions.still_initializing(group.states, wanted.offsets)


def states_answered(
    group: ShareGroup,
    begun: PartitionsOfTopics,
    refused: PartitionsOfTopics,
    topics: Topics,
    step: Step,
) -> None:
    """The share coordinator has begun the state of some partitions: members may be assigned them.
    For the others a later heartbeat asks again.
    """
    states = state_partitions.begun(group.states, begun, topics)
    _change(group, state_partitions.refused(states, refused), step)


def states_forgotten(group: ShareGroup, topic_ids: Iterable[UUID], step: Step) -> None:
    """The share coordinator has forgotten all state in these topics."""
    _change(group, state_partitions.forgotten(group.states, topic_ids), step)


def _check_empty(group: ShareGroup) -> None:
    if group.members:
        raise ApiError(ErrorCode.non_empty_group, "The group is not empty.")


def _change(group: ShareGroup, states: StatesValue, step: Step) -> None:
    if states != group.states:
        step.records.append(states_record(group.group_id, states))
