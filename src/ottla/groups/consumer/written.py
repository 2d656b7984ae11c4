"""The records that a group's decisions write. Kafka's GroupCoordinatorRecordHelpers."""

from __future__ import annotations

from ottla.groups.consumer.member import Member
from ottla.groups.consumer.stored import ConsumerRecord, CurrentValue, MemberValue
from ottla.groups.newer_stored import CurrentKey, MemberKey, keys_of_member


def member_record(group: str, member: Member) -> ConsumerRecord:
    """What the member says of itself."""
    value = MemberValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(member.subscribed_topics)),
        member.subscribed_regex,
        member.rebalance_timeout_ms,
        member.server_assignor,
        member.classic,
    )
    return ConsumerRecord(MemberKey(group, member.member_id), value)


def current_record(group: str, member: Member) -> ConsumerRecord:
    """Where the member is."""
    value = CurrentValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        member.assigned,
        member.pending_revocation,
    )
    return ConsumerRecord(CurrentKey(group, member.member_id), value)


def removal_records(group: str, member_id: str) -> list[ConsumerRecord]:
    """A member is gone."""
    return [ConsumerRecord(key, None) for key in keys_of_member(group, member_id)]
