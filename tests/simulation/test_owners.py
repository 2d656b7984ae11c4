from __future__ import annotations

from uuid import UUID

import pytest
from simulation.owners import check_owners, check_task_owners
from simulation.violation import Violation

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.written import current_record, member_record
from ottla.groups.streams import written as streams_written
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member as StreamsMember
from ottla.groups.streams.tasks import HeldTasks

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


def tasks_of(*members: StreamsMember) -> StreamsGroup:
    group = StreamsGroup("app")
    for member in members:
        group.apply(streams_written.member_record("app", member))
        group.apply(streams_written.current_record("app", member))
    return group


def test_each_task_has_one_owner() -> None:
    a = StreamsMember("a", process_id="p", epoch=5, assigned=HeldTasks({"0": {0: 5}}))
    b = StreamsMember(
        "b", process_id="q", epoch=6, assigned=HeldTasks({"0": {1: 6}}, {"0": frozenset({0})})
    )
    check_task_owners(tasks_of(a, b), "broker 1")
    giving_up = b._replace(assigned=HeldTasks(), pending_revocation=HeldTasks({"0": {0: 3}}))
    with pytest.raises(Violation, match=r"members a and b both have task \('0', 0\)"):
        check_task_owners(tasks_of(a, giving_up), "broker 1")
    becomes_standby = a._replace(
        assigned=HeldTasks({}, {"0": frozenset({0})}), pending_revocation=HeldTasks({"0": {0: 5}})
    )
    check_task_owners(tasks_of(becomes_standby), "broker 1")
    beside = b._replace(process_id="p")
    with pytest.raises(Violation, match=r"p has task .* active and as a standby task"):
        check_task_owners(tasks_of(a, beside), "broker 1")


def test_the_group_knows_the_owners_of_tasks() -> None:
    group = tasks_of(StreamsMember("a", process_id="p", assigned=HeldTasks({"0": {0: 5}})))
    group.active_owners["0", 7] = "p"
    with pytest.raises(Violation, match="its members"):
        check_task_owners(group, "broker 1")
