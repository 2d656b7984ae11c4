"""Whether a client may commit or fetch offsets for a streams group; a former owner may not.

Kafka's counterparts are StreamsGroup.validateOffsetCommit and validateOffsetFetch.
"""

from __future__ import annotations

from ottla.groups.consumer.commit import FIRST_COMMIT_VERSION, FIRST_TRANSACTIONAL_VERSION
from ottla.groups.streams.departure import known_member
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.protocol.errors import ApiError, ErrorCode


def late_member(
    group: StreamsGroup,
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
    for transactions before version 6 ILLEGAL_GENERATION).
    """
    if epoch < 0 and not group.members:
        return None
    if is_transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    member = known_member(group, member_id)
    if not is_transactional and version < FIRST_COMMIT_VERSION:
        raise ApiError(
            ErrorCode.unsupported_version,
            f"OffsetCommit version {FIRST_COMMIT_VERSION} or above must be used by members using"
            " the streams group protocol",
        )
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        raise ApiError(late_error(version, is_transactional=is_transactional))
    return member


def had_since(group: StreamsGroup, member: Member, epoch: int, topic: str, partition: int) -> bool:
    """Whether a late member has had the partition's task since that epoch (KIP-1251)."""
    subtopology = group.readers.get(topic)
    if subtopology is None:
        return False
    for held in (member.assigned, member.pending_revocation):
        assigned_in = held.active.get(subtopology, {}).get(partition)
        if assigned_in is not None:
            return epoch >= assigned_in
    return False


def late_error(version: int, *, is_transactional: bool) -> ErrorCode:
    """What a client of this version gets (KIP-1319)."""
    knows_epochs = not is_transactional or version >= FIRST_TRANSACTIONAL_VERSION
    return ErrorCode.stale_member_epoch if knows_epochs else ErrorCode.illegal_generation


def check_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """OffsetFetch of a member; raises ApiError (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH).

    A client that names no member, such as an administrator, may always fetch.
    """
    if member_id is None and epoch < 0:
        return
    if epoch != known_member(group, member_id or "").epoch:
        raise ApiError(ErrorCode.stale_member_epoch)
