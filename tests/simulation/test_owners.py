from __future__ import annotations

from uuid import UUID

import pytest
from simulation.owners import check_owners
from simulation.violation import Violation

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.written import current_record, member_record

TOPIC = UUID(int=1)


def group_of(*members: Member) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for member in members:
        group.apply(member_record("g", member))
        group.apply(current_record("g", member))
    return group


def test_each_partition_has_one_owner() -> None:
    a = Member("a", epoch=5, assigned={TOPIC: {0: 5}}, pending_revocation={TOPIC: {1: 4}})
    b = Member("b", epoch=6, assigned={TOPIC: {2: 6}})
    check_owners(group_of(a, b), "broker 1")
    late = b._replace(assigned={TOPIC: {1: 6}})
    with pytest.raises(Violation, match="members a and b both have partition 1"):
        check_owners(group_of(a, late), "broker 1")


def test_the_group_knows_them() -> None:
    group = group_of(Member("a", epoch=5, assigned={TOPIC: {0: 5}}))
    group.owner_epochs[TOPIC, 7] = 3
    with pytest.raises(Violation, match="its members"):
        check_owners(group, "broker 1")
