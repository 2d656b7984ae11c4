"""What a group subscribes to once a member has changed, before the change is applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.settings import ASSIGNORS, DEFAULT_ASSIGNOR


class Change(NamedTuple):
    """A member before and after; without one of them it joins or leaves."""

    before: Member | None
    after: Member | None

    @property
    def changes_subscription(self) -> bool:
        if self.before is None or self.after is None:
            return True
        return self.before.subscribed_topics != self.after.subscribed_topics


def members_after(group: ConsumerGroup, change: Change) -> list[Member]:
    """All members, sorted by id; a static member's new id takes the place of the old one."""
    gone = set()
    if change.before is not None:
        gone.add(change.before.member_id)
    if change.after is not None:
        gone.add(change.after.member_id)
        if change.after.instance_id is not None:
            gone.add(group.static_members.get(change.after.instance_id, ""))
    members = [member for name, member in group.members.items() if name not in gone]
    if change.after is not None:
        members.append(change.after)
    return sorted(members, key=attrgetter("member_id"))


def subscribed_names(group: ConsumerGroup, change: Change) -> set[str]:
    """All names that any member subscribes to, by name or by a resolved regular expression."""
    names = set(group.subscribers)
    had = has = None
    if change.before is not None:
        # A member that is not in the group yet has no topics before.
        names -= {name for name in change.before.subscribed_topics if group.subscribers[name] <= 1}
        had = change.before.subscribed_regex
    if change.after is not None:
        names |= change.after.subscribed_topics
        has = change.after.subscribed_regex
    for regex, resolved in group.regexes.items():
        # Members may be thousands with one expression: what it matches is added once.
        if group.regex_subscribers[regex] - (regex == had) + (regex == has):
            names.update(resolved.topics)
    return names


def changes_assignor(group: ConsumerGroup, change: Change) -> bool:
    """Whether most members ask for another assignor now (as in Apache Kafka since 4.4: before, it
    counted from the next rebalance on).
    """
    had = None if change.before is None else change.before.server_assignor
    has = None if change.after is None else change.after.server_assignor
    # Members may be thousands, and nearly no heartbeat says anything of it.
    return had != has and preferred_assignor(group.members.values()) != preferred_assignor(
        members_after(group, change)
    )


def is_homogeneous(members: Iterable[Member]) -> bool:
    """All subscribe to the same: either by name, or all by one regular expression alone."""
    found = {(member.subscribed_topics, member.subscribed_regex or "") for member in members}
    return len(found) <= 1 and not any(names and regex for names, regex in found)


def preferred_assignor(members: Iterable[Member]) -> str:
    """What most members ask for; the default where none does, or where we do not have it."""
    wanted = Counter([name for member in members if (name := member.server_assignor) is not None])
    known = [name for name in ASSIGNORS if wanted[name]]
    return max(known, key=lambda name: wanted[name]) if known else DEFAULT_ASSIGNOR
