"""One step of a member towards its target assignment.

A member first gives up what the target does not have any more, and stays in its epoch until it
reports that it has. Then it moves to the epoch of the target and gets what is free; what others
still own follows when they have given it up. So no partition ever has two owners. Kafka's
counterpart is CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import NO_OWNED, Member, MemberState, OwnedPartitions

NO_OWNER = -1


class FencedMemberError(Exception):
    """The member has to give up everything and join again (FENCED_MEMBER_EPOCH)."""


class Target(NamedTuple):
    """What a member is to have, and what is known of its way there."""

    epoch: int
    partitions: Partitions
    subscribed: Set[UUID]
    """Ids of the topics that the member subscribes to and that exist."""
    has_subscription_changed: bool = False
    """In this very heartbeat: what it does not subscribe to any more goes at once."""


OwnerEpoch = Callable[[UUID, int], int]
"""The epoch of the member that owns the partition, or NO_OWNER."""


def reconcile(
    member: Member, target: Target, owner_epoch: OwnerEpoch, reported: Partitions | None
) -> Member:
    """The member's next state; the same member where it can get no further.

    `reported` is what the member says it owns, None if it says nothing. Raises FencedMemberError
    for a member in a state that we do not know, unless it owns nothing.
    """
    if member.state is MemberState.STABLE:
        if member.epoch != target.epoch:
            return _next_assignment(member, member.epoch, target, owner_epoch, reported)
        if target.has_subscription_changed:
            return _without_unsubscribed(member, target, reported)
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(reported, member.pending_revocation):
            if target.has_subscription_changed:
                return _without_unsubscribed(member, target, reported)
            return member
        return _next_assignment(member, member.epoch, target, owner_epoch, reported)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _next_assignment(member, member.epoch, target, owner_epoch, reported)
    if reported is None or reported:
        raise FencedMemberError("the member is in a state that this coordinator does not know")
    return _next_assignment(member, target.epoch, target, owner_epoch, reported)


def _owns_any(reported: Partitions | None, revoked: OwnedPartitions) -> bool:
    """Whether the member still owns any of these; it does as long as it does not say."""
    if reported is None:
        return True
    return any(
        not partitions.isdisjoint(revoked.get(topic, ())) for topic, partitions in reported.items()
    )


def _without_unsubscribed(member: Member, target: Target, reported: Partitions | None) -> Member:
    """Only takes away the topics that the member does not subscribe to any more."""
    gone = member.assigned.keys() - target.subscribed
    if not gone and (target.subscribed or member.pending_revocation):
        # A member without topics is written once more, as Kafka does.
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic not in gone}
    revoked = dict(member.pending_revocation)
    for topic in gone:
        revoked[topic] = {**revoked.get(topic, {}), **member.assigned[topic]}
    moved = member.with_epoch(member.epoch)._replace(assigned=kept)
    if not revoked or not _owns_any(reported, revoked):
        return moved
    return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=revoked)


def _next_assignment(
    member: Member,
    epoch: int,
    target: Target,
    owner_epoch: OwnerEpoch,
    reported: Partitions | None,
) -> Member:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    for topic, epochs in member.assigned.items():
        wanted = target.partitions.get(topic, ()) if topic in target.subscribed else ()
        for partition, assigned_in in epochs.items():
            side = kept if partition in wanted else revoked
            side.setdefault(topic, {})[partition] = assigned_in
    if revoked and _owns_any(reported, revoked):
        return member.with_epoch(epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    has_unreleased = _take_free(member, target, owner_epoch, kept)
    return member.with_epoch(target.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
        assigned=kept,
        pending_revocation=NO_OWNED,
    )


def _take_free(
    member: Member, target: Target, owner_epoch: OwnerEpoch, kept: dict[UUID, dict[int, int]]
) -> bool:
    """Adds the target's free partitions; whether others own some of them."""
    has_unreleased = False
    for topic, wanted in target.partitions.items():
        if topic not in target.subscribed:
            continue
        own_revoked = member.pending_revocation.get(topic, {})
        for partition in wanted - kept.get(topic, {}).keys():
            if owner_epoch(topic, partition) != NO_OWNER and partition not in own_revoked:
                has_unreleased = True
            else:
                kept.setdefault(topic, {})[partition] = target.epoch
    return has_unreleased
