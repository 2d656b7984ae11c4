"""Who may commit for a consumer group; cases follow Apache Kafka's tests."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.groups.consumer.world import World

from ottla.groups.consumer.commit import check_fetch, late_member, partition_error
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ClassicMetadata, Member
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.written import current_record, member_record
from ottla.protocol.errors import ApiError, ErrorCode

ONE = UUID(int=1)
MEMBER = Member(
    "m", epoch=10, previous_epoch=9, assigned={ONE: {0: 5, 1: 10}}, pending_revocation={ONE: {2: 6}}
)


def group_of(*members: Member) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for member in members:
        for record in (member_record("g", member), current_record("g", member)):
            assert isinstance(record, ConsumerRecord)
            group.apply(record)
    return group


def refusal(member: Member, member_id: str, epoch: int, version: int = 9) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        late_member(group_of(member), member_id, None, epoch, version=version)
    return caught.value.code


def test_without_members_anybody_may_commit() -> None:
    group = World().shard.groups.get("g") or ConsumerGroup("g")
    assert late_member(group, "", None, -1, version=8) is None
    with pytest.raises(ApiError, match="not a member"):
        late_member(group, "m", None, 10, version=9)


def test_a_member_commits_in_its_epoch_and_not_in_a_later_one() -> None:
    assert late_member(group_of(MEMBER), "m", None, 10, version=9) is None
    assert refusal(MEMBER, "m", 11) is ErrorCode.stale_member_epoch
    assert refusal(MEMBER, "x", 10) is ErrorCode.unknown_member_id
    assert refusal(MEMBER, "", -1) is ErrorCode.unknown_member_id
    assert refusal(MEMBER, "m", 10, version=8) is ErrorCode.unsupported_version


def test_a_late_member_commits_what_it_has_had_since_then() -> None:
    late = late_member(group_of(MEMBER), "m", None, 8, version=9)
    assert late == MEMBER
    errors = [partition_error(MEMBER, 8, ONE, partition) for partition in range(4)]
    stale = ErrorCode.stale_member_epoch
    assert errors == [ErrorCode.none, stale, ErrorCode.none, stale]
    assert partition_error(MEMBER, 8, UUID(int=2), 0) is stale


def test_classic_members_have_generations() -> None:
    classic = MEMBER._replace(classic=ClassicMetadata(1, (("range", b""),)))
    assert late_member(group_of(classic), "m", None, 10, version=2) is None
    assert refusal(classic, "m", 11, version=2) is ErrorCode.illegal_generation
    assert partition_error(classic, 4, ONE, 0) is ErrorCode.illegal_generation


def test_transactions_may_name_no_member_and_have_generations_too() -> None:
    group = group_of(MEMBER)
    assert late_member(group, "", None, -1, version=3, is_transactional=True) is None
    assert late_member(group, "m", None, 10, version=3, is_transactional=True) is None
    with pytest.raises(ApiError) as caught:
        late_member(group, "m", None, 11, version=3, is_transactional=True)
    assert caught.value.code is ErrorCode.illegal_generation
    error = partition_error(MEMBER, 4, ONE, 0, knows_epochs=False)
    assert error is ErrorCode.illegal_generation
    with pytest.raises(ApiError) as caught:  # KIP-1319
        late_member(group, "m", None, 11, version=6, is_transactional=True)
    assert caught.value.code is ErrorCode.stale_member_epoch


def test_fetching() -> None:
    group = group_of(MEMBER)
    check_fetch(group, None, -1)
    check_fetch(group, "m", 10)
    for member_id, epoch, error in (
        ("x", 10, ErrorCode.unknown_member_id),
        ("m", 9, ErrorCode.stale_member_epoch),
        ("m", 11, ErrorCode.stale_member_epoch),
    ):
        with pytest.raises(ApiError) as caught:
            check_fetch(group, member_id, epoch)
        assert caught.value.code is error
