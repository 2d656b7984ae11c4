"""Which partitions have state at the share coordinator, as a group goes through it.

    initializing  the share coordinator is asked to begin; asked again after the retry interval
    initialized   it has: members are assigned the partition
    deleting      it is asked to forget a topic, before the group or its offsets there are deleted;
                  until it has, there may be state in any partition of the topic

A topic in which something begins stays `deleting` until all of its partitions have begun again: a
deletion that failed may have left the state of some. Kafka forgets that as soon as one begins, so
that the state outlives the group, and fences the next one of that name.

Each function returns what the group's record is to say next. Kafka's counterparts are the methods
of GroupMetadataManager around ShareGroupStatePartitionMetadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias
from uuid import UUID

from ottla.groups.consumer.topics import Topics
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.stored import StatesValue, StateTopic, StateTopics

PartitionsOfTopics: TypeAlias = Mapping[UUID, Collection[int]]


def missing(
    group: ShareGroup, names: Iterable[str], topics: Topics, retry_ms: int, now_ms: int
) -> dict[UUID, StateTopic]:
    """The partitions of these topics of which the share coordinator is to begin the state now.

    A clock that was set back does not make them wait (Kafka waits until it has caught up).
    """
    states = group.states
    is_recent = 0 <= now_ms - group.states_since_ms < retry_ms
    found = {}
    for name in names:
        topic = topics.by_name.get(name)
        if topic is None:
            continue
        known = _numbers(states.initialized, topic.id)
        if is_recent:
            known = known | _numbers(states.initializing, topic.id)
        if len(known) < topic.partition_count:
            numbers = frozenset(range(topic.partition_count)) - known
            found[topic.id] = StateTopic(name, numbers)
    return found


def _numbers(topics: StateTopics, topic_id: UUID) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def _united(topics: StateTopics, more: StateTopics) -> StateTopics:
    united = dict(topics)
    for topic_id, topic in more.items():
        numbers = _numbers(topics, topic_id) | topic.partitions
        united[topic_id] = StateTopic(topic.name, numbers)
    return united


def _without(topics: StateTopics, less: PartitionsOfTopics) -> StateTopics:
    left = dict(topics)
    for topic_id, numbers in less.items():
        topic = topics.get(topic_id)
        if topic is not None:
            rest = topic.partitions.difference(numbers)
            if rest:
                left[topic_id] = topic._replace(partitions=rest)
            else:
                del left[topic_id]
    return left


def beginning(states: StatesValue, begun: StateTopics) -> StatesValue:
    """The share coordinator is asked to begin."""
    return states._replace(initializing=_united(states.initializing, begun))


def still_initializing(
    states: StatesValue, topic_ids: Iterable[UUID]
) -> dict[UUID, frozenset[int]]:
    """The partitions of these topics that are initializing."""
    return {topic_id: _numbers(states.initializing, topic_id) for topic_id in topic_ids}


def begun(states: StatesValue, done: PartitionsOfTopics, topics: Topics) -> StatesValue:
    """The share coordinator has begun. What is not initializing any more (the topic was deleted, or
    its offsets were, meanwhile) stays away.
    """
    found = {}
    for topic_id, numbers in done.items():
        topic = states.initializing.get(topic_id)
        if topic is not None:
            its = topic.partitions.intersection(numbers)
            if its:
                found[topic_id] = StateTopic(topic.name, its)
    initialized = _united(states.initialized, found)
    deleting = {
        topic_id: name
        for topic_id, name in states.deleting.items()
        if topic_id not in found
        or _all_of(topics, topic_id, name) - _numbers(initialized, topic_id)
    }
    return StatesValue(_without(states.initializing, done), initialized, deleting)


def _all_of(topics: Topics, topic_id: UUID, name: str) -> frozenset[int]:
    """All partitions of a topic; none if it is gone: it has no state any more, or its state is
    found by nobody.
    """
    topic = topics.by_name.get(name)
    if topic is None or topic.id != topic_id:
        return frozenset()
    return frozenset(range(topic.partition_count))


def refused(states: StatesValue, partitions: PartitionsOfTopics) -> StatesValue:
    """The share coordinator has not begun; a later heartbeat asks again."""
    return states._replace(initializing=_without(states.initializing, partitions))


def all_deleting(
    states: StatesValue, topics: Topics
) -> tuple[StatesValue, dict[UUID, frozenset[int]]]:
    """All state is to be forgotten, as the group is deleted; and what that is.

    A topic that is gone may still be here, if nobody could write as it was deleted. Its states go
    without being asked for, and share coordinators refuse what names it: the group could never be
    deleted.
    """
    names = dict(states.deleting)
    for topic_id, topic in _united(states.initialized, states.initializing).items():
        names[topic_id] = topic.name
    partitions = {}
    for topic_id, name in names.items():
        numbers = _all_of(topics, topic_id, name)
        if topic_id not in states.deleting:
            had = _numbers(states.initialized, topic_id) | _numbers(states.initializing, topic_id)
            numbers &= had
        if numbers:
            partitions[topic_id] = numbers
    marked = {topic_id: names[topic_id] for topic_id in partitions}
    return StatesValue({}, {}, marked), partitions


def deleting(
    states: StatesValue, names: Iterable[str], topics: Topics
) -> tuple[StatesValue, dict[UUID, frozenset[int]]]:
    """The state in these topics is to be forgotten; and what that is, by topic. A topic without
    state is not in there.
    """
    initialized, marked = dict(states.initialized), dict(states.deleting)
    partitions: dict[UUID, frozenset[int]] = {}
    for name in names:
        topic = topics.by_name.get(name)
        if topic is None:
            continue
        had = initialized.pop(topic.id, None)
        numbers = frozenset() if had is None else had.partitions
        if topic.id in states.deleting:
            numbers |= frozenset(range(topic.partition_count))
        if had is not None or topic.id in states.deleting:
            partitions[topic.id] = partitions.get(topic.id, frozenset()) | numbers
            marked[topic.id] = name
    return StatesValue(states.initializing, initialized, marked), partitions


def forgotten(states: StatesValue, topic_ids: Iterable[UUID]) -> StatesValue:
    """The share coordinator has forgotten these topics, of those that are being deleted."""
    left = dict(states.deleting)
    for topic_id in topic_ids:
        left.pop(topic_id, None)
    return states._replace(deleting=left)


def without_topic(states: StatesValue, topic_id: UUID) -> StatesValue:
    """The topic itself is deleted."""
    if not any(topic_id in topics for topics in states):
        return states
    initializing, initialized = dict(states.initializing), dict(states.initialized)
    initializing.pop(topic_id, None)
    initialized.pop(topic_id, None)
    return StatesValue(initializing, initialized, forgotten(states, (topic_id,)).deleting)


def is_assignment_pending(group: ShareGroup, topics: Topics) -> bool:
    """Whether initialized partitions of a subscribed topic are nobody's yet."""
    assigned: dict[UUID, set[int]] = {}
    for target in group.targets.values():
        for topic_id, numbers in target.items():
            assigned.setdefault(topic_id, set()).update(numbers)
    for topic_id, state in group.states.initialized.items():
        topic = topics.by_name.get(state.name)
        # One that is deleted, or made again with another id, is assigned to nobody.
        is_there = topic is not None and topic.id == topic_id
        is_subscribed = is_there and state.name in group.subscribers
        if is_subscribed and assigned.get(topic_id, set()) != state.partitions:
            return True
    return False
