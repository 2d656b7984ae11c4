"""A member's way to its target assignment; cases and results follow Apache Kafka's tests."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import Member, MemberState, OwnedPartitions
from ottla.groups.consumer.reconcile import (
    NO_OWNER,
    FencedMemberError,
    Target,
    reconcile,
)

ONE, TWO = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def owned(one: set[int], two: set[int], epoch: int = 10) -> OwnedPartitions:
    both = ((ONE, one), (TWO, two))
    return {topic: dict.fromkeys(sorted(each), epoch) for topic, each in both if each}


def parts(one: set[int], two: set[int]) -> Partitions:
    return {topic: frozenset(each) for topic, each in ((ONE, one), (TWO, two)) if each}


def member(
    state: MemberState,
    assigned: OwnedPartitions,
    revoked: OwnedPartitions | None = None,
    epoch: int = 10,
    previous: int = 10,
) -> Member:
    return Member(
        "m",
        epoch=epoch,
        previous_epoch=previous,
        state=state,
        assigned=assigned,
        pending_revocation=revoked or {},
    )


def target(
    epoch: int, one: set[int], two: set[int], subscribed: tuple[UUID, ...] = (ONE, TWO)
) -> Target:
    return Target(epoch, parts(one, two), set(subscribed))


def free(_topic: UUID, _partition: int) -> int:
    return NO_OWNER


def taken(_topic: UUID, _partition: int) -> int:
    return 10


HAS = owned({1, 2, 3}, {4, 5, 6})
KEEPS = owned({2, 3}, {5, 6})
REVOKES = owned({1}, {4})


def with_new(one: int, two: int, epoch: int) -> OwnedPartitions:
    return {ONE: {1: 10, 2: 10, 3: 10, one: epoch}, TWO: {4: 10, 5: 10, 6: 10, two: epoch}}


def test_a_stable_member_without_changes_moves_to_the_next_epoch() -> None:
    after = reconcile(member(STABLE, HAS), target(11, {1, 2, 3}, {4, 5, 6}), taken, None)
    assert after == member(STABLE, HAS, epoch=11)


def test_a_stable_member_in_the_epoch_of_its_target_stays() -> None:
    before = member(STABLE, HAS)
    assert reconcile(before, target(10, {1}, set()), taken, None) is before


def test_free_partitions_are_assigned_in_the_epoch_of_the_target() -> None:
    after = reconcile(member(STABLE, HAS), target(11, {1, 2, 3, 4}, {4, 5, 6, 7}), free, None)
    assert after == member(STABLE, with_new(4, 7, 11), epoch=11)


def test_what_others_own_is_waited_for() -> None:
    after = reconcile(member(STABLE, HAS), target(11, {1, 2, 3, 4}, {4, 5, 6, 7}), taken, None)
    assert after == member(UNRELEASED, HAS, epoch=11)


def test_partitions_to_give_up_keep_the_member_in_its_epoch() -> None:
    after = reconcile(member(STABLE, HAS), target(11, {2, 3, 4}, {5, 6, 7}), free, None)
    assert after == member(UNREVOKED, KEEPS, REVOKES)


def test_a_member_that_does_not_own_them_any_more_has_nothing_to_give_up() -> None:
    def owner(topic: UUID, _partition: int) -> int:
        return 10 if topic == TWO else NO_OWNER

    after = reconcile(member(STABLE, HAS), target(11, {1, 2, 3}, {4, 5, 7}), owner, {})
    assert after == member(UNRELEASED, owned({1, 2, 3}, {4, 5}), epoch=11)


@pytest.mark.parametrize("reported", [None, parts({1, 2, 3}, {5, 6}), parts({2, 3}, {4, 5, 6})])
def test_a_member_stays_until_it_has_given_up_everything(reported: Partitions | None) -> None:
    before = member(UNREVOKED, KEEPS, REVOKES)
    assert reconcile(before, target(12, {3}, {6}), free, reported) is before


def test_who_has_given_up_moves_to_the_target() -> None:
    before = member(UNREVOKED, KEEPS, REVOKES)
    after = reconcile(before, target(11, {2, 3}, {5, 6}), free, parts({2, 3}, {5, 6}))
    assert after == member(STABLE, KEEPS, epoch=11)


def test_who_has_given_up_may_have_to_give_up_more() -> None:
    before = member(UNREVOKED, KEEPS, REVOKES)
    after = reconcile(before, target(12, {3}, {6}), free, parts({2, 3}, {5, 6}))
    assert after == member(UNREVOKED, owned({3}, {6}), owned({2}, {5}))


def test_who_has_given_up_may_have_to_wait_for_others() -> None:
    before = member(UNREVOKED, KEEPS, REVOKES, epoch=11)
    after = reconcile(before, target(11, {2, 3, 4}, {5, 6, 7}), taken, parts({2, 3}, {5, 6}))
    assert after == member(UNRELEASED, KEEPS, epoch=11, previous=11)


def test_a_partition_that_the_member_itself_gave_up_is_free_for_it() -> None:
    before = member(UNREVOKED, KEEPS, REVOKES)
    after = reconcile(before, target(12, {1, 2, 3}, {5, 6}), taken, parts({2, 3}, {5, 6}))
    assert after == member(STABLE, {ONE: {1: 12, 2: 10, 3: 10}, TWO: {5: 10, 6: 10}}, epoch=12)


def test_who_waits_gets_what_became_free() -> None:
    before = member(UNRELEASED, KEEPS, epoch=11, previous=11)
    after = reconcile(before, target(11, {2, 3, 4}, {5, 6, 7}), free, None)
    assert after == member(
        STABLE, {ONE: {2: 10, 3: 10, 4: 11}, TWO: {5: 10, 6: 10, 7: 11}}, epoch=11, previous=11
    )


def test_who_waits_keeps_waiting_and_nothing_changes() -> None:
    before = member(UNRELEASED, KEEPS, epoch=11, previous=11)
    assert reconcile(before, target(11, {2, 3, 4}, {5, 6, 7}), taken, None) == before


def test_who_waits_may_have_to_give_up_for_a_newer_target() -> None:
    before = member(UNRELEASED, KEEPS, epoch=11, previous=11)
    after = reconcile(before, target(12, {3}, {6}), taken, None)
    assert after == member(UNREVOKED, owned({3}, {6}), owned({2}, {5}), epoch=11, previous=11)


def test_some_free_and_some_not() -> None:
    def owner(topic: UUID, _partition: int) -> int:
        return NO_OWNER if topic == ONE else 10

    before = member(STABLE, KEEPS, epoch=10)
    after = reconcile(before, target(11, {2, 3, 4}, {5, 6, 7}), owner, None)
    assert after == member(UNRELEASED, {ONE: {2: 10, 3: 10, 4: 11}, TWO: {5: 10, 6: 10}}, epoch=11)


@pytest.mark.parametrize("reported", [None, parts({1}, set())])
def test_a_member_in_an_unknown_state_is_fenced(reported: Partitions | None) -> None:
    before = member(MemberState.of(7), KEEPS, REVOKES, epoch=11)
    with pytest.raises(FencedMemberError):
        reconcile(before, target(12, {3}, {6}), free, reported)


def test_unless_it_owns_nothing() -> None:
    before = member(MemberState.of(7), KEEPS, REVOKES, epoch=11)
    after = reconcile(before, target(12, {3}, {6}), free, {})
    assert after == member(STABLE, owned({3}, {6}), epoch=12, previous=11)


def test_topics_that_are_not_subscribed_to_any_more_go_in_the_same_epoch() -> None:
    before = member(STABLE, HAS)
    changed = target(10, {1, 2, 3}, {4, 5, 6}, (ONE,))._replace(has_subscription_changed=True)
    after = reconcile(before, changed, taken, None)
    assert after == member(UNREVOKED, owned({1, 2, 3}, set()), owned(set(), {4, 5, 6}))
    assert reconcile(before, changed, taken, {}) == member(STABLE, owned({1, 2, 3}, set()))
    same = changed._replace(subscribed={ONE, TWO})
    assert reconcile(before, same, taken, None) is before


def test_and_add_to_what_is_still_to_be_given_up() -> None:
    before = member(UNREVOKED, KEEPS, REVOKES)
    changed = target(12, {3}, {6}, (ONE,))._replace(has_subscription_changed=True)
    after = reconcile(before, changed, free, parts({1}, {4}))
    assert after == member(UNREVOKED, owned({2, 3}, set()), owned({1}, {4, 5, 6}))


def test_a_member_that_subscribes_to_nothing_and_has_nothing_is_where_it_was() -> None:
    before = member(STABLE, {}, previous=9)
    changed = target(10, set(), set(), ())._replace(has_subscription_changed=True)
    assert reconcile(before, changed, taken, None) == member(STABLE, {})


def test_a_target_in_topics_that_are_not_subscribed_to_counts_as_empty() -> None:
    after = reconcile(member(STABLE, HAS), target(11, {1, 2, 3}, {4, 5, 6}, (ONE,)), free, None)
    assert after == member(UNREVOKED, owned({1, 2, 3}, set()), owned(set(), {4, 5, 6}))
    after = reconcile(member(STABLE, {}), target(11, {1}, {4}, (ONE,)), free, None)
    assert after == member(STABLE, {ONE: {1: 11}}, epoch=11)


def test_the_epochs_of_a_member() -> None:
    moved = member(STABLE, HAS).with_epoch(12)
    assert (moved.epoch, moved.previous_epoch) == (12, 10)
    assert moved.is_reconciled_to(12)
    assert not moved.is_reconciled_to(13)
    assert not member(UNRELEASED, HAS).is_reconciled_to(10)
    assert moved.has_same_partitions(member(STABLE, owned({1, 2, 3}, {4, 5, 6}, epoch=3)))
    assert not moved.has_same_partitions(member(STABLE, KEEPS))
