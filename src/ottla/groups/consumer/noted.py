"""What the deciders of consumer groups note for the group's history (`groups.history.events`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.stored import ConsumerRecord, TargetValue
from ottla.groups.consumer.subscription import Change, subscribed_names
from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import (
    CONSUMER,
    Assigned,
    Cause,
    Caused,
    Emptied,
    Happened,
    Reached,
    Who,
    Why,
)
from ottla.groups.newer_stored import TargetKey

MAX_TOLD: Final = 6
"""Topics; one more than are shown, so that it is known that there are more."""


def who_is(member: Member) -> Who:
    return Who(member.member_id, member.instance_id, member.client_id, member.client_host)


def note_change(
    group: ConsumerGroup,
    change: Change,
    epoch: int,
    topics: Topics,
    step: Step,
    *,
    bumps: bool,
) -> None:
    """What this member, or the topics, change; `epoch` is the group's then."""
    after = change.after
    assert after is not None
    cause = None
    if after.member_id not in group.members:
        previous_id = group.static_members.get(after.instance_id or "", "")
        cause = Cause(
            Why.REPLACED if previous_id else Why.JOINED, who_is(after), other_id=previous_id
        )
    elif bumps:
        cause = Cause(Why.SUBSCRIPTION_CHANGED, who_is(after))
    elif epoch != group.epoch:
        names = subscribed_names(group, change)
        cause = Cause(Why.TOPICS_CHANGED, details=changed_topics(group, names, topics))
    if cause is None:
        return
    kind = Caused if epoch != group.epoch else Happened
    step.committed.append(kind(group.group_id, CONSUMER, epoch, step.now_ms, cause))


def changed_topics(group: ConsumerGroup, names: Iterable[str], topics: Topics) -> Sequence[str]:
    """How the topics differ from those that the targets are made of."""
    had: Counter[UUID] = Counter()
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            had[topic_id] += len(partitions)
    told: list[str] = []
    known = set()
    for name in sorted(names):
        topic = topics.by_name.get(name)
        if topic is None:
            continue
        known.add(topic.id)
        before, now = had[topic.id], topic.partition_count
        if before != now and len(told) < MAX_TOLD:
            told.append(f"{name}: {before:,} to {now:,} partitions" if before else f"{name}: new")
    gone = sum(topic_id not in known for topic_id in had)
    if gone:
        told.insert(0, f"{gone:,} deleted")
    return told


def note_regexes(
    group: ConsumerGroup,
    before: Mapping[str, tuple[str, ...]],
    now: Mapping[str, tuple[str, ...]],
    step: Step,
) -> None:
    """Regular expressions match other topics than before."""
    told: list[str] = []
    for regex, names in now.items():
        old = before.get(regex, ())
        new = sorted(set(names) - set(old))
        told += [f"{regex} matches {name}" for name in new[:MAX_TOLD]]
        told += [f"{regex}: {name} is gone" for name in sorted(set(old) - set(names))[:MAX_TOLD]]
    cause = Cause(Why.REGEX_MATCHED, details=told)
    step.committed.append(Caused(group.group_id, CONSUMER, group.epoch + 1, step.now_ms, cause))


def note_assigned(
    group: ConsumerGroup,
    epoch: int,
    members: Iterable[Member],
    records: Iterable[ConsumerRecord],
    changing: Member,
    step: Step,
) -> None:
    """The targets for this epoch; those of `records` differ from before."""
    before, after = {}, {}
    for key, value in records:
        if isinstance(key, TargetKey):
            assert isinstance(value, TargetValue)
            before[key.member] = group.targets.get(key.member, NO_PARTITIONS)
            after[key.member] = value.partitions
    if changing.member_id in before:
        before[changing.member_id] = group.target_of(changing)
    clients = {member.member_id: member.client_id for member in members}
    step.committed.append(
        Assigned(group.group_id, CONSUMER, epoch, step.now_ms, clients, before, after)
    )


def note_reached(group: ConsumerGroup, member: Member, step: Step) -> None:
    step.committed.append(Reached(group.group_id, member.member_id, member.epoch, step.now_ms))


def note_gone(
    group: ConsumerGroup,
    gone: Mapping[str, Member],
    causes: Mapping[str, Cause],
    step: Step,
) -> None:
    """These members go, each because of its cause."""
    epoch = group.epoch + 1
    for member_id in gone:
        lost = {member_id: group.targets.get(member_id, NO_PARTITIONS)}
        step.committed.append(
            Caused(group.group_id, CONSUMER, epoch, step.now_ms, causes[member_id], lost)
        )
    if len(gone) == len(group.members):
        step.committed.append(Emptied(group.group_id, CONSUMER, epoch, step.now_ms))
