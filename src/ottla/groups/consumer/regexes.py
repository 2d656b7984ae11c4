"""Subscriptions by regular expression: when they are matched against the cluster's topics, and what
comes of it.

The matching itself is done elsewhere, as it takes long: a heartbeat says which expressions are due,
and `resolved` takes the topics that they match. Until then a member has none of them. Kafka's
counterparts are maybeUpdateRegularExpressions and handleRegularExpressionsResult of
GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.noted import note_regexes
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.stored import ConsumerRecord, GroupValue, RegexKey, RegexValue
from ottla.groups.consumer.topics import Topics
from ottla.groups.newer_stored import GroupKey
from ottla.protocol.errors import ApiError, ErrorCode

MIN_INTERVAL_MS: Final = 10_000
"""Between two times that a group's expressions are matched, whatever happens."""
MAX_GROUP_REGEXES: Final = 100
"""Each is matched against every topic, and what it matches is kept."""


class RegexChange(NamedTuple):
    """What a heartbeat changes in its member's regular expression."""

    has_changed: bool = False
    moves_topics: bool = False
    """Targets are due: the topics of the new one are known already, as it is another member's too;
    or there is none any more (as in Apache Kafka since 4.4); or what the old one matched is for
    others now. In Kafka that waits until the new one is matched, and stays nobody's for good if the
    new one matches nothing.
    """


NO_CHANGE: Final = RegexChange()


def changed(
    group: ConsumerGroup, before: Member, after: Member, records: list[ConsumerRecord]
) -> RegexChange:
    """Removes the old expression if it was the last member's with it.

    Raises ApiError (INVALID_REQUEST) where a group would have too many.
    """
    old, new = before.subscribed_regex or "", after.subscribed_regex or ""
    if old == new:
        return NO_CHANGE
    subscribers = group.regex_subscribers
    if old in group.regexes and subscribers[old] == 1:
        records.append(ConsumerRecord(RegexKey(group.group_id, old), None))
    if new and new not in subscribers and len(subscribers) >= MAX_GROUP_REGEXES:
        raise ApiError(
            ErrorCode.invalid_request,
            f"The group's members have {MAX_GROUP_REGEXES} regular expressions already.",
        )
    given_up = old in group.regexes and bool(group.regexes[old].topics)
    return RegexChange(True, not new or new in group.regexes or given_up)


def due(group: ConsumerGroup, after: Member, topics: Topics, step: Step) -> tuple[str, ...]:
    """The group's expressions, if they are to be matched now."""
    wanted = set(group.regex_subscribers)
    if after.subscribed_regex:
        wanted.add(after.subscribed_regex)
    if not wanted:
        return ()
    unresolved = not wanted <= group.regexes.keys()
    last_ms = max((value.timestamp_ms for value in group.regexes.values()), default=None)
    if last_ms is None:
        return tuple(wanted)
    age_ms = step.now_ms - last_ms
    if 0 <= age_ms <= MIN_INTERVAL_MS:
        return ()
    is_old = not 0 <= age_ms <= step.settings.regex_refresh_interval_ms
    if unresolved or is_old or group.regex_version != topics.version:
        return tuple(wanted)
    return ()


def resolved(
    matched: Mapping[str, tuple[str, ...]],
    version: int,
    group: ConsumerGroup,
    topics: Topics,
    step: Step,
) -> None:
    """Takes the sorted topics that each expression matches, of those that the cluster had at this
    `version`; others than before begin a new epoch. Expressions that no member has any more are
    left out.
    """
    group.regex_version = version
    now = {regex: names for regex, names in matched.items() if regex in group.regex_subscribers}
    for regex, names in now.items():
        value = RegexValue(names, version, step.now_ms)
        step.records.append(ConsumerRecord(RegexKey(group.group_id, regex), value))
    before = {regex: value.topics for regex, value in group.regexes.items()}
    if all(before.get(regex, ()) == names for regex, names in now.items()):
        return
    note_regexes(group, before, now, step)
    after = before | now
    subscribed = set(group.subscribers)
    for regex in group.regex_subscribers:
        subscribed.update(after.get(regex, ()))
    epoch = GroupValue(group.epoch + 1, topics.metadata_hash(subscribed))
    step.records.append(ConsumerRecord(GroupKey(group.group_id), epoch))
