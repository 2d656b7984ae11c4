"""Transcripts: what brokers do, and the effect on partitions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from ottla.controller import broker_changes, reassignment
from ottla.controller.broker_changes import brokers_changed
from ottla.controller.image import (
    BrokerAppeared,
    BrokerVanished,
    DirectoryChanged,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.controller.plan import Plan
from ottla.coordination.tree import SetData

World = Any
"""The class of the fixture `world`; see conftest.py."""


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        # The leader dies: the first live in-sync replica in assignment order leads.
        ("1@4 1,2,3 | 1,2,3", (1,), "2@5 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 3,1,2", (1,), "2@5 1,2,3 | 3,2"),
        ("1@4 1,2,3 | 1,3", (1,), "3@5 1,2,3 | 3"),
        # A follower dies: the leader stays, in its epoch.
        ("1@4 1,2,3 | 1,2,3", (2,), "1@4 1,2,3 | 1,3"),
        # A replica that was not in sync dies: nothing changes.
        ("1@4 1,2,3 | 1,3", (2,), "1@4 1,2,3 | 1,3"),
        # Two die in one event.
        ("1@4 1,2,3 | 1,2,3", (1, 2), "3@5 1,2,3 | 3"),
        ("1@4 1,2,3 | 1,2,3", (2, 3), "1@4 1,2,3 | 1"),
        # All in-sync replicas die together: all stay in sync, and there is no leader.
        ("1@4 1,2,3 | 1,2", (1, 2), "-@5 1,2,3 | 1,2"),
        ("1@4 1,2,3 | 1,2,3", (1, 2, 3), "-@5 1,2,3 | 1,2,3"),
        ("1@4 1 | 1", (1,), "-@5 1 | 1"),
        # Already offline: another death changes nothing.
        ("-@5 1,2,3 | 1", (2,), "-@5 1,2,3 | 1"),
    ],
)
def test_brokers_vanish(world: World, before: str, gone: tuple[int, ...], after: str) -> None:
    if before.startswith("-"):
        world.down(1)
    world.topic("t", before)
    reply = world.down(*gone)
    assert world.show() == [after]
    assert reply.vanished == gone
    assert all(not election.unclean for election in reply.elections)


def test_any_in_sync_replica_leads_when_it_returns(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2")
    world.down(1, 2)
    assert world.show() == ["-@5 1,2,3 | 1,2"]
    assert world.up(3).elections == ()
    assert world.show() == ["-@5 1,2,3 | 1,2"]
    assert world.up(2).elections == (("t", 0, -1, 2, 6, False),)
    assert world.show() == ["2@6 1,2,3 | 2"]
    assert world.up(1).elections == ()
    assert world.show() == ["2@6 1,2,3 | 2"]


@pytest.mark.parametrize(
    ("before", "again", "after"),
    [
        # The leader returns in a new incarnation before its death was noticed.
        ("1@4 1,2,3 | 1,2,3", (1,), "2@5 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 1,2,3", (2,), "1@4 1,2,3 | 1,3"),
        # It was the only in-sync replica: it leads again, in a new epoch.
        ("1@4 1,2,3 | 1", (1,), "1@5 1,2,3 | 1"),
        # All in-sync replicas bounced: each has all committed records.
        ("1@4 1,2,3 | 1,2", (1, 2), "1@5 1,2,3 | 1,2"),
        ("2@4 1,2,3 | 2,1", (1, 2), "1@5 1,2,3 | 2,1"),
    ],
)
def test_bounced_brokers(world: World, before: str, again: tuple[int, ...], after: str) -> None:
    world.topic("t", before)
    reply = world.up(*again)
    assert reply.bounced == again
    assert (reply.vanished, reply.appeared) == ((), ())
    assert world.show() == [after]


def test_a_sole_replica_that_did_not_stop_cleanly_leads_in_a_new_epoch(world: World) -> None:
    """It may have lost records that consumers have read: the epoch tells them (KIP-320)."""
    world.topic("t", "1@4 1 | 1", "1@4 1,2 | 1", "2@4 2 | 2")
    assert world.up(1).elections == (("t", 0, 1, 1, 5, False), ("t", 1, 1, 1, 5, False))
    assert world.show() == ["1@5 1 | 1", "1@5 1,2 | 1", "2@4 2 | 2"]
    # A clean stop has lost nothing. Others have copied all of it, or may be ahead.
    world.up(1, clean=True)
    assert world.show() == ["1@5 1 | 1", "1@6 1,2 | 1", "2@4 2 | 2"]
    # A folder from a backup: that stop was clean, but it was not the last one.
    old = world.image.directories[1].epoch
    world.up(1, clean=True)
    world.live[1] = replace(world.live[1], epoch=world.live[1].epoch + 1, previous_epoch=old)
    assert world.check().bounced == (1,)
    assert world.show() == ["1@6 1 | 1", "1@8 1,2 | 1", "2@4 2 | 2"]


def test_a_leader_that_only_registers_again_keeps_its_epoch(world: World) -> None:
    """Once, twice, and when a new controller finds it."""
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    for _ in range(2):
        reply = world.again(1, 2)
        assert (reply.vanished, reply.appeared, reply.bounced) == ((), (), ())
        assert world.show() == ["1@4 1,2,3 | 1,2,3"]
    other = world.after_crash(Plan(None), 0)
    assert other.again(1, 3).bounced == ()
    assert other.show() == ["1@4 1,2,3 | 1,2,3"]


def test_a_broker_that_registers_again_after_an_election_follows(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    former = world.live[1]
    world.down(1)
    world.live[1] = former
    assert world.again(1).elections == ()
    assert world.show() == ["2@5 1,2,3 | 2,3"]


def test_a_restart_and_a_second_registration_are_a_new_incarnation(world: World) -> None:
    """No controller saw the first registration of this process."""
    world.topic("t", "1@4 1,2,3 | 1,2,3")
    known = world.live[1].epoch
    world.live[1] = replace(world.live[1], epoch=known + 1000)
    assert world.again(1).bounced == (1,)
    assert world.show() == ["2@5 1,2,3 | 2,3"]


def test_one_broker_bounces_while_the_other_dies(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    del world.live[1]
    world.up(2)
    assert world.show() == ["2@5 1,2 | 2"]


@pytest.mark.parametrize(
    ("before", "dead", "back", "after"),
    [
        # Others are in sync: it leaves the ISR.
        ("2@4 1,2,3 | 2,3", (), 1, "2@4 1,2,3 | 2,3"),
        ("1@4 1,2,3 | 1,2", (), 1, "2@5 1,2,3 | 2"),
        # All were dead; the one that returned has no log, and waits for the other.
        ("1@4 1,2,3 | 1,2", (1, 2), 1, "-@5 1,2,3 | 2"),
        # It was the only in-sync replica of several: the ISR is empty now.
        ("1@4 1,2,3 | 1", (1,), 1, "-@5 1,2,3 |"),
        ("1@4 1,2,3 | 1", (), 1, "-@5 1,2,3 |"),
        # It is the only replica: it leads, empty.
        ("1@4 1 | 1", (1,), 1, "1@6 1 | 1"),
        ("1@4 1 | 1", (), 1, "1@5 1 | 1"),
    ],
)
def test_a_broker_returns_without_its_disk(
    world: World, before: str, dead: tuple[int, ...], back: int, after: str
) -> None:
    world.topic("t", before)
    if dead:
        world.down(*dead)
    reply = world.up(back, disk="new")
    assert reply.without_disk == (back,)
    assert world.show() == [after]
    assert [election.unclean for election in reply.elections] == (
        [True] if after.startswith("1@") else [False] * len(reply.elections)
    )
    # The new folder is known from now on: returning with it is an ordinary restart.
    assert world.up(back, disk="new").without_disk == ()


def test_after_a_lost_disk_an_unclean_election_prefers_a_replica_with_a_log(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    reply = world.up(1, disk="new")
    assert world.show() == ["2@5 1,2,3 | 2"]
    assert reply.elections == (("t", 0, 1, 2, 5, True),)


def test_unclean_election_set_on_the_topic_or_the_brokers(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    world.topic("u", "1@4 1,2,3 | 1")
    world.topic("v", "1@4 1,2,3 | 1,3", unclean_leader_election_enable="true")
    reply = world.down(1)
    assert [world.show(name) for name in "tuv"] == [
        ["2@5 1,2,3 | 2"],
        ["-@5 1,2,3 | 1"],
        ["3@5 1,2,3 | 3"],
    ]
    assert {each.topic: each.unclean for each in reply.elections} == {"t": True, "v": False}
    assert reply.offline == (("u", 0),)
    world.config.reconfigure({"unclean.leader.election.enable": "true"}, {})
    assert world.check().elections == (("u", 0, -1, 2, 6, True),)


def test_the_first_replica_to_return_leads_unclean(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", unclean_leader_election_enable="true")
    world.down(1, 2, 3)
    assert world.show() == ["-@5 1,2,3 | 1"]
    assert world.up(3).elections == (("t", 0, -1, 3, 6, True),)
    assert world.show() == ["3@6 1,2,3 | 3"]


def test_a_broker_that_shuts_down_keeps_leading_but_is_not_elected(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2,3", "2@4 2,1,3 | 2,1,3", "1@4 1,2 | 1,2")
    world.shutting_down = {2}
    world.down(1)
    assert world.show() == ["3@5 1,2,3 | 2,3", "2@4 2,1,3 | 2,3", "-@5 1,2 | 2"]
    # It restarted instead of stopping.
    world.up(2)
    assert world.show() == ["3@5 1,2,3 | 3", "3@5 2,1,3 | 3", "2@6 1,2 | 2"]


def test_no_unclean_election_while_an_in_sync_replica_is_live(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1,2", unclean_leader_election_enable="true")
    world.shutting_down = {2}
    world.down(1)
    assert world.show() == ["-@5 1,2,3 | 2"]


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        # The last replica to be removed dies: all the others are in sync.
        ("1@4 2,3,1 | 1,2,3 +3 -1", (1,), "2@6 2,3 | 2,3"),
        # An added one is not in sync yet: the reassignment goes on with a leader of the old ones.
        ("1@4 2,3,1 | 1,2 +3 -1", (1,), "2@5 2,3,1 | 2 +3 -1"),
        # The added one dies.
        ("1@4 2,3,1 | 1,2 +3 -1", (3,), "1@4 2,3,1 | 1,2 +3 -1"),
    ],
)
def test_brokers_vanish_during_a_reassignment(
    world: World, before: str, gone: tuple[int, ...], after: str
) -> None:
    world.topic("t", before)
    world.down(*gone)
    assert world.show() == [after]


def test_writes_are_fenced_by_versions_and_deltas_are_one_a_topic(world: World) -> None:
    world.topic("t", *["1@4 1,2 | 1,2"] * 3, "2@4 2,3 | 2,3")
    world.topic("u", "1@0 1,3 | 1,3")
    del world.live[1]
    plan = brokers_changed(world.live, world.image, world.config)
    writes = [each for each in plan.writes if isinstance(each, SetData)]
    assert len(writes) == len(plan.writes) == 4
    assert {each.version for each in writes} == {0}
    assert [type(each) for each in plan.deltas] == [BrokerVanished] + [PartitionsChanged] * 2
    changed = plan.deltas[1]
    assert isinstance(changed, PartitionsChanged)
    assert changed.partitions == (0, 1, 2)
    world.do(plan)
    again = brokers_changed(world.live, world.image, world.config)
    assert (again.writes, again.deltas) == ((), ())


def test_directories_are_written_once_and_last(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    world.live[1] = replace(world.live[1], epoch=999, directory_id="new")
    plan = brokers_changed(world.live, world.image, world.config)
    assert [type(each) for each in plan.deltas] == [
        BrokerVanished,
        BrokerAppeared,
        PartitionsChanged,
        DirectoryChanged,
    ]
    assert plan.writes[-1].path == "/ottla/directories/1"


def test_a_stop_between_any_two_writes_can_be_repaired(world: World) -> None:
    world.topic("t", "1@4 1,2,3 | 1", "1@4 1,3 | 1,3", "1@4 2,3,1 | 1,2,3 +3 -1")
    del world.live[2]
    world.live[1] = replace(world.live[1], epoch=999, directory_id="new")
    plan = brokers_changed(world.live, world.image, world.config)
    ends = []
    for writes in range(len(plan.writes) + 1):
        other = world.after_crash(plan, writes)
        other.check()
        # Epochs may have grown more often.
        ends.append([re.sub("@.", "", text) for text in other.show()])
    assert set(map(tuple, ends)) == {("- 1,2,3 |", "3 1,3 | 3", "3 2,3 | 3")}


def test_a_restart_between_two_controllers_is_detected(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "1@4 1 | 1")
    known = world.live[1].epoch
    for previous_epoch, alone in ((-1, "1@5 1 | 1"), (known, "1@4 1 | 1")):
        world.live[1] = replace(world.live[1], epoch=999, previous_epoch=previous_epoch)
        other = world.after_crash(Plan(None), 0)
        other.check()
        assert other.show() == ["2@5 1,2 | 2", alone]
        other.check()
        assert other.show() == ["2@5 1,2 | 2", alone], "once for each restart"


def test_ten_thousand_partitions_need_a_few_decisions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignments = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    for number in range(100):
        states = tuple(PartitionState(each[0], 4, each, each, 0) for each in assignments * 33)
        topic = TopicImage(f"t{number}", UUID(int=number + 1), states, {})
        world.image.apply(TopicCreated(topic))
    thought = 0
    repaired = reassignment.repaired

    def counted(*given: Any, **more: Any) -> PartitionState:
        nonlocal thought
        thought += 1
        return repaired(*given, **more)

    monkeypatch.setattr(broker_changes, "repaired", counted)
    del world.live[1]
    plan = brokers_changed(world.live, world.image, world.config)
    assert len(plan.writes) == 9900
    assert len(plan.reply.elections) == 3300
    assert thought == 3
