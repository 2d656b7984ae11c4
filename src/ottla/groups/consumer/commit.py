"""Whether a client may commit or fetch offsets for a consumer group; a former owner may not.

Kafka's counterparts are ConsumerGroup.validateOffsetCommit and validateOffsetFetch.
"""

from __future__ import annotations

from uuid import UUID

from ottla.groups.consumer.departure import known_member
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.protocol.errors import ApiError, ErrorCode

FIRST_COMMIT_VERSION = 9
"""Of OffsetCommit, that knows member epochs."""
FIRST_TRANSACTIONAL_VERSION = 6
"""Of TxnOffsetCommit, that knows the error of a late one (KIP-1319)."""


def late_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    version: int,
    is_transactional: bool = False,
) -> Member | None:
    """The member, where it commits with an earlier epoch and each partition has to be checked.

    None where it may commit for all. Without members, anybody may; a transaction that names no
    member may, too. Raises ApiError (UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH;
    for classic members, and transactions before version 6, ILLEGAL_GENERATION).
    """
    knows_epochs = not is_transactional or version >= FIRST_TRANSACTIONAL_VERSION
    if epoch < 0 and not group.members:
        return None
    if is_transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    member = known_member(group, member_id)
    if not is_transactional and member.classic is None and version < FIRST_COMMIT_VERSION:
        raise ApiError(
            ErrorCode.unsupported_version,
            f"OffsetCommit version {FIRST_COMMIT_VERSION} or above must be used by members using"
            " the consumer group protocol",
        )
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        raise ApiError(_late(member, knows_epochs=knows_epochs))
    return member


def partition_error(
    member: Member, epoch: int, topic: UUID, partition: int, *, knows_epochs: bool = True
) -> ErrorCode:
    """Whether a late member has had the partition since that epoch (KIP-1251). `knows_epochs`:
    the client knows the error STALE_MEMBER_EPOCH.
    """
    for owned in (member.assigned, member.pending_revocation):
        assigned_in = owned.get(topic, {}).get(partition)
        if assigned_in is not None:
            if epoch >= assigned_in:
                return ErrorCode.none
            break
    return _late(member, knows_epochs=knows_epochs)


def _late(member: Member, *, knows_epochs: bool = True) -> ErrorCode:
    if not knows_epochs or member.classic is not None:
        return ErrorCode.illegal_generation
    return ErrorCode.stale_member_epoch


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """OffsetFetch of a member; raises ApiError (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH).

    A client that names no member, such as an administrator, may always fetch.
    """
    if member_id is None and epoch < 0:
        return
    member = known_member(group, member_id or "")
    if epoch != member.epoch:
        raise ApiError(_late(member))
